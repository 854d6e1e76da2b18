"""The kernel families on CPUs."""

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.families.cpu import direct, moments_wavefront, own, ranges, sparse, wavefront
from lbmtune.catalogue.families.cpu.direct import Direct
from lbmtune.catalogue.families.cpu.moments_wavefront import MomentsWavefront
from lbmtune.catalogue.families.cpu.own import OwnCpu
from lbmtune.catalogue.families.cpu.sparse import Sparse
from lbmtune.catalogue.families.cpu.wavefront import Wavefront
from lbmtune.catalogue.families.made import Made

__all__ = ["RANGES", "RULES", "Direct", "MomentsWavefront", "OwnCpu", "Sparse", "Wavefront"]

RANGES: Mapping[Any, Mapping[str, Made]] = {
    Direct: ranges.DIRECT,
    Sparse: ranges.SPARSE,
    Wavefront: ranges.WAVEFRONT,
    MomentsWavefront: ranges.MOMENTS_WAVEFRONT,
}
"""Rules by which the values are made that a study of all families searches."""

RULES: Mapping[Any, tuple[Callable[..., str | None], ...]] = {
    Direct: direct.RULES,
    Sparse: sparse.RULES,
    Wavefront: wavefront.RULES,
    MomentsWavefront: moments_wavefront.RULES,
    OwnCpu: own.RULES,
}
