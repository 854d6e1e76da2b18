"""Signals end a program also where Python swallows exceptions."""

import signal
import sys
import time

import pytest

from lbmtune.cli.signals import like_ctrl_c


class Finalized:
    """Gets a signal while it is finalized, where an exception ends nothing."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def swallow_and_go_on() -> None:
    one = Finalized()
    del one
    time.sleep(2)


def test_a_signal_that_a_finalizer_swallowed_comes_again() -> None:
    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), like_ctrl_c():
        swallow_and_go_on()
    assert sys.unraisablehook is before
