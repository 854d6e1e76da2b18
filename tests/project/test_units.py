"""Quantities as people write and read them."""

from __future__ import annotations

import pytest

from lbmtune.errors import InputError, unknown
from lbmtune.units import format_bytes, format_mlups, format_rate, mlups, parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("90s", 90.0), ("5m", 300.0), ("1.5h", 5400.0), (" 250 ms ", 0.25), ("2min", 120.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "5 parsecs", "1.2.3s", "-5s"])
def test_bad_durations_are_bad_input(text: str) -> None:
    with pytest.raises(InputError, match="is not a positive number with a unit; write for example 90s, 5m or 1h"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (2**30, "1 GiB"),
        (3 * 2**40, "3 TiB"),
        (2**50, "1 PiB"),
        (2**72, "4096 EiB"),
    ],
)
def test_bytes_for_people(value: float, text: str) -> None:
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (331435.2, "331,435"),
        (512.345, "512"),
        (99.7, "100"),
        (62.31, "62.3"),
        (9.996, "10.00"),
        (1.234, "1.23"),
        (0.05678, "0.0568"),
        (0.0, "0"),
    ],
)
def test_slow_kernels_have_three_digits_like_others(value: float, text: str) -> None:
    assert format_mlups(value) == text


def test_rates() -> None:
    assert format_rate(4.08e12) == "4080 GB/s"
    assert mlups(sites=256**3, steps=100, seconds=0.0625) == pytest.approx(26843.5456)


def test_a_name_far_from_all_known_ones_gets_the_list() -> None:
    assert str(unknown("flow", "zzz", ("cavity", "box"))) == "unknown flow 'zzz'; choose one of box, cavity."
