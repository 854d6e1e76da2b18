"""The kernel families on CUDA."""

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.families.cuda import (
    column,
    direct,
    face_exchange,
    own,
    persistent,
    ranges,
    sparse,
    temporal_blocking_rules,
    tile_ranges,
)
from lbmtune.catalogue.families.cuda.column import Column
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange
from lbmtune.catalogue.families.cuda.own import OwnCuda
from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.families.made import Made

__all__ = ["RANGES", "RULES", "Column", "Direct", "FaceExchange", "OwnCuda", "Persistent", "Sparse", "TemporalBlocking"]

RANGES: Mapping[Any, Mapping[str, Made]] = {
    Direct: ranges.DIRECT,
    Column: ranges.COLUMN,
    Sparse: ranges.SPARSE,
    TemporalBlocking: tile_ranges.TEMPORAL_BLOCKING,
    Persistent: tile_ranges.PERSISTENT,
    FaceExchange: tile_ranges.FACE_EXCHANGE,
}
"""Rules by which the values are made that a study of all families searches."""

RULES: Mapping[Any, tuple[Callable[..., str | None], ...]] = {
    Direct: direct.RULES,
    Column: column.RULES,
    Sparse: sparse.RULES,
    TemporalBlocking: temporal_blocking_rules.RULES,
    Persistent: persistent.RULES,
    FaceExchange: face_exchange.RULES,
    OwnCuda: own.RULES,
}
