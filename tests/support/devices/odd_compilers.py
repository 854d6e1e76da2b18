"""Compilers and renderers of the fake device for single tests, where workers find them without the test itself."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from tests.support.devices.fake_device import ONCE, compiler, config, renderer

EXAMPLE = config("idle", "cuda")


def slow_compiler(program: Program) -> Binary:
    time.sleep(0.3)
    return compiler(program)


def counted_compiler(program: Program) -> Binary:
    with Path(os.environ[ONCE]).open("a") as file:
        file.write("compiled\n")
    return compiler(program)


def same_renderer(case: Case, config: KernelConfig) -> Program:
    return replace(renderer(case, config), source="right")


def broken_renderer(case: Case, config: KernelConfig) -> Program:
    """Ends the process at an example, and renders everything else."""
    if config == EXAMPLE:
        os._exit(3)
    return renderer(case, config)
