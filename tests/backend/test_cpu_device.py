"""The processor as a device, if it cannot be one."""

from __future__ import annotations

import numba
import pytest

from lbmtune.backend.registry import open_device
from lbmtune.errors import DeviceUnavailableError


def test_without_the_compiler_of_numba_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_device("cpu").limits.cores
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(
        DeviceUnavailableError, match=r"^the CPU needs Numba's compiler, which NUMBA_DISABLE_JIT turns off"
    ):
        open_device("cpu")
