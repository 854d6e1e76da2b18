"""CUDA text of the pass that completes walls of second order after a step (kernels/cuda/passes/walls.cu)."""

from lbmtune.catalogue.config import CudaConfig
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.storage import has_hints


def text(config: CudaConfig) -> str:
    """Return the text of the pass, which stands after that of the kernel and uses its names."""
    names = "".join(f"using ::{name};\n" for name in ("narrow", "Stored", "widen"))
    form = "namespace format = plain;" if has_hints(config) else f"namespace format {{\n{names}}}"
    return fill("passes/walls.cu", {"format": form})
