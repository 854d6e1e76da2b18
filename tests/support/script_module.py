"""Scripts of the repository as modules, for tests of what they are made of."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """The module of a script, executed anew; dataclasses want it among the modules."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_script", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
