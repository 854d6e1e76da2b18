"""CUDA text of face exchange: tiles of moments that store at their faces what crosses them."""

from lbmtune.codegen.cuda.face_exchange.program import render

__all__ = ["render"]
