"""Measure ways to exchange between the GPUs of one host beside one of them, each proved first.

    python -m scripts.measurements.couplings OUT.json --seconds 200             two GPUs: kernels, transports, overlaps
    python -m scripts.measurements.couplings OUT.json --scaling --devices 8     weak and strong scaling over 2, 4 and 8
    python -m scripts.measurements.couplings OUT.json --share 1/2               every second group, for a host with more
    python -m scripts.measurements.couplings --scaling --devices 8 --predict h200     what the model says; no GPU needed

A group is a kernel on a domain with a cut. Its kernel on parts is compared with one GPU on a small domain; then each
coupling with the first one, bit for bit, on the domain that is timed. OUT.json is written after each group, and groups
that it has are not measured again; the groups most wanted come first: what does not fit into the seconds is left out.
Each group has the prediction by the shipped description of the same card, with the links that were measured first, made
before the group is. Launches are as long as they were on one GPU of the kind in the recorded run, if it has the group.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from lbmtune.api.machines.shipped import as_machine, machine_of
from lbmtune.api.predicted.parallel import with_links
from lbmtune.backend.protocol import Compiler, DeviceFaultError, PeerDevice
from lbmtune.backend.registry import compiler_for, link, open_device
from lbmtune.errors import InputError
from lbmtune.measure.calibration.gpu_links import LinksBench
from lbmtune.model.machine.description import Links, Machine
from scripts.measurements.couplings.groups import GROUPS, Group, scaling
from scripts.measurements.couplings.laboratory import Laboratory
from scripts.measurements.couplings.measured import measured, predictions
from scripts.paths import RECORDED

LEAST_S = 12
"""Seconds that a group may take; none begins with less."""
_ALIKE = ("lattice", "collision", "flow", "geometry")
"""Fields of a case that a recorded kernel has to share, beside its domain."""
Opened = tuple[Sequence[PeerDevice], Compiler]


def links(devices: Sequence[PeerDevice], compiler: Compiler) -> list[dict[str, Any]]:
    """Measure the links between the devices, as `lbmtune devices --links` does; none if there is no clock."""
    try:
        bench = LinksBench(devices, compiler, lambda one, other: link(str(one), str(other)))
        return [vars(one) for one in bench.measure(lambda _: None)]
    except NotImplementedError:
        return []


def with_measured(machine: Machine, found: Sequence[dict[str, Any]]) -> Machine:
    """Return a machine with the links that were measured of its devices, or with known ones. found: as of `links`.

    Figures that were not measured then are those of the known links.
    """
    known = with_links(machine)
    if not found or "call_s" not in found[0]:
        return known
    more = {name: figure for name, figure in vars(known.links or Links(**found[0])).items() if not found[0].get(name)}
    calls = {**(known.links.call_s if known.links else {}), **found[0]["call_s"]}
    return replace(machine, links=Links(**{**found[0], **more, "call_s": calls}))


def recorded_launch_s(group: Group, device: str) -> float | None:
    """Return the seconds of a launch on one device of a kind in the recorded run; None if it has not the kernel."""
    recorded = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDED.glob("*/couplings.json")))
    known = (one for document in recorded if document["device"] == device for one in document["groups"])
    case = group.of_one
    same = (case.domain, group.kernel.flat(), *(getattr(case, name) for name in _ALIKE))
    for one in known:
        if (tuple(one["alone_domain"]), one["config"], *(one[name] for name in _ALIKE)) == same:
            return float(median(one["alone_s"])) * group.kernel.fused_steps / float(one["steps"])
    return None


def document_of(devices: Sequence[PeerDevice], compiler: Compiler, out: Path) -> dict[str, Any]:
    """Return what an earlier call wrote, or a document without groups."""
    if out.exists():
        return {**json.loads(out.read_text()), "failed": []}
    device = devices[0].environment
    return {
        "what": "GPUs of one host in turns with one, seconds from one exchange to the next",
        "date": datetime.now(UTC).date().isoformat(),
        "device": device.device,
        "driver": device.driver,
        "devices": len(devices),
        "links": links(devices, compiler),
        "groups": [],
        "failed": [],
    }


def measure(
    out: Path, groups: Sequence[Group], opened: Opened, seconds: float, repeats: int = 5, sample_s: float = 0.04
) -> int:
    """Measure the groups that a file does not have yet. Returns the number of those that failed or were left out."""
    laboratory, document = Laboratory(*opened, seconds), document_of(*opened, out)
    known = {group["name"] for group in document["groups"]}
    left = [group for group in groups if group.name not in known]
    machine = machine_of(document["device"])
    laboratory.say("links", document["links"])
    for group in left:
        with suppress(InputError):  # said where it is measured
            laboratory.programs(group, group.of_one)
    for group in left:
        laboratory.say(group.name)
        if laboratory.left_s < LEAST_S:
            document["failed"].append([group.name, "no time"])
            continue
        try:
            described = with_measured(machine, document["links"]) if machine else None
            before = predictions(group, described, recorded_launch_s(group, document["device"])) if described else {}
            found = measured(group, laboratory, repeats, sample_s)
            document["groups"].append({**found, "predicted": before})
        except DeviceFaultError:  # nothing runs in this process any more
            document["failed"].append([group.name, traceback.format_exc()])
            _write(out, document)
            return _in_a_new_process(out, laboratory.left_s, left[left.index(group) + 1 :])
        except Exception:  # the next group may be well
            laboratory.say("   failed", traceback.format_exc())
            document["failed"].append([group.name, traceback.format_exc()])
        laboratory.free()
        _write(out, document)
    laboratory.close()
    laboratory.say(sum(len(one["couplings"]) for one in document["groups"]), "couplings")
    return len(document["failed"])


def _in_a_new_process(out: Path, seconds: float, left: Sequence[Group]) -> int:
    """Measure what is left after a fault. Returns the number of groups that failed."""
    if not left:
        return 1
    command = [sys.executable, "-m", "scripts.measurements.couplings", str(out), "--seconds", f"{seconds:.0f}"]
    command += ["--devices", str(left[0].devices), *(f"--group={group.name}" for group in left)]
    return 1 + subprocess.run(command, check=False).returncode


def _write(out: Path, document: dict[str, Any]) -> None:
    out.write_text(json.dumps(document, indent=1))


def predict(groups: Sequence[Group], machine: Machine) -> list[str]:
    """Return a table of the predictions of groups, in Markdown."""
    rows = ["| kernel | cut | coupling | MLUPS | efficiency | exchange, us |", "|---|---|---|---|---|---|"]
    for group in groups:
        for coupling, one in predictions(group, machine).get("couplings", {}).items():
            figures = f"{one['mlups']:,.0f} | {one['efficiency']:.3f} | {1e6 * one['exchange_s']:.0f}"
            rows.append(f"| {group.name} | {group.cut} | `{coupling or 'default'}` | {figures} |")
    return rows


def chosen(given: argparse.Namespace) -> list[Group]:
    """Return the groups that the command line asks for."""
    groups = [*GROUPS, *scaling(given.devices)] if given.group else scaling(given.devices) if given.scaling else GROUPS
    part, parts = given.share
    return [group for group in groups if not given.group or group.name in given.group][part - 1 :: parts]


def share(text: str) -> tuple[int, int]:
    """Return the numbers of a share such as 1/2. Raises ValueError for anything else."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", help="file of the results, which is added to")
    parser.add_argument("--seconds", type=float, default=200.0, help="for all groups [200]")
    parser.add_argument("--scaling", action="store_true", help="weak and strong scaling instead")
    parser.add_argument("--devices", type=int, default=2, help="number of GPUs [2]")
    parser.add_argument("--group", action="append", help="measure this group only; may be repeated")
    parser.add_argument("--share", type=share, default=(1, 1), metavar="K/N", help="every N-th group from the K-th on")
    parser.add_argument("--predict", metavar="MACHINE", help="print what the model says of a machine")
    given = parser.parse_args(words)
    if not given.out and not given.predict:
        parser.error("give a file for the results, or --predict MACHINE")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """Measure or predict the groups of the command line."""
    given = arguments(words)
    if given.predict:
        print("\n".join(predict(chosen(given), with_links(as_machine(given.predict)))))
        return 0
    devices: list[Any] = [open_device(str(number)) for number in range(given.devices)]
    return min(measure(given.out, chosen(given), (devices, compiler_for(devices[0].environment)), given.seconds), 99)


if __name__ == "__main__":
    sys.exit(main())
