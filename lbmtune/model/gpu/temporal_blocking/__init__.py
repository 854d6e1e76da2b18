"""Temporal blocking on a GPU."""

from lbmtune.model.gpu.family import Family
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.temporal_blocking.terms import cells_read, estimated, memory_bytes, terms, uncalibrated_terms

__all__ = ["MODEL"]

MODEL = Family(TemporalInputs, terms, estimated, memory_bytes, uncalibrated_terms, cells_read=cells_read)
