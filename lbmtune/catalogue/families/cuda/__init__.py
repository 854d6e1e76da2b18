"""The kernel families on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.families.cuda import (
    box_rules,
    face_exchange_rules,
    persistent_rules,
    sparse_rules,
    temporal_blocking_rules,
)
from lbmtune.catalogue.families.cuda.column import Column
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange
from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking

__all__ = ["RULES", "Column", "Direct", "FaceExchange", "Persistent", "Sparse", "TemporalBlocking"]

RULES: Mapping[Any, tuple[Callable[..., str | None], ...]] = {
    Direct: box_rules.DIRECT,
    Column: box_rules.COLUMN,
    Sparse: sparse_rules.RULES,
    TemporalBlocking: temporal_blocking_rules.RULES,
    Persistent: persistent_rules.RULES,
    FaceExchange: face_exchange_rules.RULES,
}
