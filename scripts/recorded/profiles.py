"""Compare recorded loss breakdowns with the model.

    python -m scripts.recorded.profiles [FOLDER] [--out build/profiles]

For every profile below FOLDER, with the machine description beside its folder: speed of the kernel, largest deviation
of the loss of a rung from its prediction (as a share of the speed of the ceiling), unexplained loss, and measured over
predicted bytes of memory. Pages go to --out. The exit code is 0 if all are within the bounds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from lbmtune.model.loss_breakdown import expected
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.legacy.configurations import config_of
from lbmtune.records.profile import Profile
from lbmtune.report.profile import write_profile_page
from lbmtune.report.profile_tables import Deviation, deviation
from lbmtune.units import format_mlups
from scripts.paths import RECORDED, ROOT

RUNG_BAR, UNEXPLAINED_BAR, BYTES_BAR = 0.03, 0.05, 0.05


def kept(folder: Path) -> list[tuple[str, Profile]]:
    """Return the profiles below a folder by name, with new predictions."""
    found = []
    for path in sorted(folder.rglob("profiles/*.json")):
        profile = msgspec.json.decode(path.read_bytes(), type=Profile)
        machine = read_machine(path.parent.parent / "machine.toml")
        found.append((f"{path.parent.parent.name}/{path.stem}", expected(profile, machine)))
    return found


def within(found: Deviation) -> bool:
    """Return whether a profile is within the bounds; False for missing figures."""
    if found.level is None or found.unexplained is None or found.bytes_ratio is None:
        return False
    explained = found.level <= RUNG_BAR and abs(found.unexplained) <= UNEXPLAINED_BAR
    return explained and abs(found.bytes_ratio - 1) <= BYTES_BAR


def main(arguments: list[str]) -> int:
    """Print a line for each profile and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "profiles")
    given = parser.parse_args(arguments)
    profiles = kept(given.folder)
    print(f"{'':34}{'MLUPS':>8}{'of ceiling':>12}{'worst level':>12}{'unexplained':>13}{'DRAM bytes':>12}")
    for name, profile in profiles:
        found, share = deviation(profile), profile.rungs[-1].mlups / profile.rungs[0].mlups
        told = (f"{value:.3f}" if value is not None else "-" for value in found)
        level, unexplained, moved = told
        verdict = "" if within(found) else f"   beyond the bars: {config_of(profile.config).brief}"
        mlups = profile.rungs[-1].mlups
        print(f"{name:34}{format_mlups(mlups):>8}{share:12.1%}{level:>12}{unexplained:>13}{moved:>12}{verdict}")
        write_profile_page(profile, given.out / f"{name.replace('/', '-')}.html")
    return 0 if profiles and all(within(deviation(profile)) for _, profile in profiles) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
