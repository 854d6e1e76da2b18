"""Draw the pictures of the documents as SVG, from the tables of the code and one recorded profile.

    python -m scripts.docs.pictures [--check]

Writes docs/pictures/*.svg; with --check, writes nothing and fails if a file is missing or out of date. The pictures
have a background of their own, light or dark by the reader's setting, and need no font or script.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import hypot, log
from pathlib import Path

import msgspec

from lbmtune.catalogue.families.cpu.wavefront import lag
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking, tile
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import Access, Place
from lbmtune.lattice import LATTICES, Lattice
from lbmtune.records.profile import Profile
from scripts.contest.page import Contest, curves
from scripts.contest.score import MARKS
from scripts.contest.table import kept
from scripts.paths import RECORDED, ROOT

FOLDER = ROOT / "docs" / "pictures"
H200 = RECORDED / "nvidia-h200"
Point = tuple[float, float]

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .small { font-size: 11px; } .title { font-weight: 600; } .middle { text-anchor: middle; } .end { text-anchor: end; }
  .back { fill: #ffffff; stroke: #d0d7de; } .cell { fill: none; stroke: #8c959f; } .faint { stroke: #d0d7de; }
  .home { fill: #ddf4ff; stroke: #8c959f; } .halo { fill: #fff1e5; stroke: #bc4c00; }
  .kept { fill: #ddf4ff; stroke: #0969da; }
  .one { stroke: #0969da; fill: #0969da; } .two { stroke: #bc4c00; fill: #bc4c00; }
  .three { stroke: #1a7f37; fill: #1a7f37; } .grey { stroke: #57606a; fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .back { fill: #161b22; stroke: #30363d; } .cell { stroke: #6e7681; }
    .faint { stroke: #30363d; } .home, .kept { fill: #12304f; } .halo { fill: #3d2a1c; stroke: #f0883e; }
    .kept { stroke: #58a6ff; } .one { stroke: #58a6ff; fill: #58a6ff; } .two { stroke: #f0883e; fill: #f0883e; }
    .three { stroke: #56d364; fill: #56d364; } .grey { stroke: #8b949e; fill: #8b949e; }
  }
"""


def main(arguments: Sequence[str]) -> int:
    """Write or check every picture; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture is out of date")
    given = parser.parse_args(arguments)
    stale = [path for path, text in pictures().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date' if given.check else 'written'}")
        if not given.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pictures()[path], encoding="utf-8")
    return int(given.check and bool(stale))


def pictures() -> Mapping[Path, str]:
    """Return the text of each picture by its path."""
    drawn: dict[str, Callable[[], str]] = {
        **{f"lattice-{name}": lambda found=found: lattice_picture(found) for name, found in LATTICES.items()},
        **{f"scheme-{name}": lambda name=name: scheme_picture(name) for name in ("pull", "aa", "esoteric-pull")},
        "stages": stages_picture,
        "temporal-tile": tile_picture,
        "wavefront": wavefront_picture,
        "loss-breakdown": loss_picture,
        "search-contest": contest_picture,
    }
    return {FOLDER / f"{name}.svg": draw() for name, draw in drawn.items()}


def lattice_picture(lattice: Lattice) -> str:
    """Return the directions of a velocity set as numbered arrows from one cell, with their weights."""
    scale = 105.0
    center = (210.0, 200.0 if lattice.dimensions == 2 else 225.0)
    flat = lattice.dimensions == 2

    def at(c: Sequence[float]) -> Point:
        x, y, z = c
        along, up = (x, y) if flat else (x + 0.46 * z, y + 0.36 * z)
        return center[0] + scale * along, center[1] - scale * up

    corners = [c for c in LATTICES["d2q9" if flat else "d3q27"].velocities if all(c[: lattice.dimensions])]
    edges = [(a, b) for a in corners for b in corners if a < b and sum(m != n for m, n in zip(a, b, strict=True)) == 1]
    parts = [_line(at(a), at(b), "faint") for a, b in edges]
    for i, c in sorted(enumerate(lattice.velocities), key=lambda one: -one[1][2]):
        length = sum(map(abs, c))
        parts.append(_arrow(at((0, 0, 0)), at(c), ("grey", "one", "two", "three")[length]) if i else "")
        tip = at([1.13 * value for value in c]) if i else (center[0] - 9, center[1] + 24)
        parts.append(_text((tip[0], tip[1] + 4), str(i), "middle small"))
    kinds = dict.fromkeys((sum(map(abs, c)), w) for c, w in zip(lattice.velocities, lattice.weights, strict=True))
    for row, (length, weight) in enumerate(kinds):
        count = sum(sum(map(abs, c)) == length for c in lattice.velocities)
        y = (350.0 if flat else 425.0) + 20 * (row // 2)
        x = 40.0 + 190 * (row % 2)
        parts += [_line((x, y - 4), (x + 24, y - 4), ("grey", "one", "two", "three")[length] + " thick")]
        parts.append(_text((x + 32, y), f"{count} of weight {weight}", "small"))
    parts.append(_text((20, 28), f"{lattice.name.upper()}: {lattice.q} directions", "title"))
    parts.append(_text((400, 28), "x to the right, y up" + ("" if flat else ", z to the back"), "small end"))
    return _svg(420, 385 if flat else 460, parts)


def scheme_picture(name: str) -> str:
    """Return the places that a cell of D2Q9 reads and writes, at each parity of the time step."""
    scheme, lattice = SCHEMES[name], LATTICES["d2q9"]
    cell, gap = 92.0, 36.0
    width = 3 * cell + gap
    parts = [_text((20, 28), f"{scheme.title[0].upper()}{scheme.title[1:]} ({scheme.source}), on D2Q9", "title")]
    for parity in range(scheme.period):
        top = 78.0 + parity * (3 * cell + 62)
        phase = scheme.phase(lattice, parity)
        when = ("even steps", "odd steps")[parity] if scheme.period > 1 else "every step"
        other = "" if phase.in_place else ", in the other lattice"
        for column, (what, place, kind) in enumerate(
            ((f"{when}: reads", _read, "one"), (f"{when}: writes{other}", _write, "two"))
        ):
            left = 20.0 + column * width
            parts.append(_text((left, top - 12), what))
            parts += _neighbourhood((left, top), cell)
            parts += [_population(lattice, a, place(a), kind, (left, top), cell) for a in phase.accesses]
    bottom = 78.0 + scheme.period * (3 * cell + 62) - 36
    legend = "Arrow: direction of the population. Position in a cell: the slot (array) that holds it. Shaded: the cell."
    parts.append(_text((20, bottom), legend, "small"))
    return _svg(2 * width, bottom + 18, parts)


def _read(access: Access) -> Place:
    return access.read


def _write(access: Access) -> Place:
    return access.write


def _neighbourhood(corner: Point, size: float) -> list[str]:
    """Return the 3 x 3 cells around the one that is updated."""
    x, y = corner
    cells = [(i, j) for j in range(3) for i in range(3)]
    return [_rect((x + i * size, y + j * size), size, size, "home" if (i, j) == (1, 1) else "cell") for i, j in cells]


def _population(lattice: Lattice, access: Access, place: Place, kind: str, corner: Point, size: float) -> str:
    """Return the arrow of a population: at the slot's position in its cell, along its direction, with its number."""
    slot, c = lattice.velocities[place.slot], lattice.velocities[access.direction]
    x = corner[0] + (1.5 + place.offset[0] + 0.3 * slot[0]) * size
    y = corner[1] + (1.5 - place.offset[1] - 0.3 * slot[1]) * size
    if not access.direction:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="{kind}"/>'
    half = 10.0 / hypot(c[0], c[1])
    arrow = _arrow((x - half * c[0], y + half * c[1]), (x + half * c[0], y - half * c[1]), kind)
    beside = (x + half * c[1], y + half * c[0] + 4)
    return arrow + _text(beside, str(access.direction), "middle small")


def stages_picture() -> str:
    """Return the way of a configuration through lbmtune, with the verb that stops at each stage."""
    stages = (
        ("space", "list"), ("rules", "explain"), ("prediction", "predict"), ("kernel text", "render"),
        ("verification", "verify"), ("measurement", "measure"), ("record", "study"), ("report, best.json", "report"),
    )  # fmt: skip
    parts = [_text((20, 28), "A configuration is data; each stage adds one value, and a verb stops there", "title")]
    for n, (stage, verb) in enumerate(stages):
        x, y = 20.0 + 178 * (n % 4), 52.0 + 96 * (n // 4)
        parts += [_rect((x, y), 146, 44, "home"), _text((x + 73, y + 27), stage, "middle")]
        parts.append(_text((x + 73, y + 62), f"lbmtune {verb}", "middle small"))
        if n % 4 < 3:
            parts.append(_arrow((x + 148, y + 22), (x + 176, y + 22), "grey"))
    parts.append(_path("M 702 74 h 30 v 56 h -724 v 40 h 10", "grey"))
    parts.append(_arrow((8, 170), (19, 170), "grey"))
    end = (
        "An illegal configuration ends at the rules with a reason; a wrong result at the verification, without a speed."
    )
    parts.append(_text((20, 246), end, "small"))
    return _svg(742, 262, parts)


def tile_picture() -> str:
    """Return the tile of a kernel with several steps per launch, and the planes that its stages hold at one time."""
    config = TemporalBlocking(representation="moments", steps=3, block=(32, 12, 1), rows=3, pack=4)
    steps, cells = config.steps, (WARP * config.cells_per_thread, config.block[1] * config.rows)
    kept = tile(LATTICES["d3q19"], config)
    scale = 9.0
    left, top = 20.0, 92.0
    parts = [_text((20, 28), f"Temporal blocking: {steps} time steps per launch", "title")]
    parts.append(_text((20, 50), f"A thread block of {config.block[0]} x {config.block[1]} threads, {config.rows} rows "
                       f"each, loads {cells[0]} x {cells[1]} cells of a plane", "small"))  # fmt: skip
    parts.append(_text((20, 66), f"and stores {kept[0]} x {kept[1]} of them. Each step makes one more ring of cells "
                       "invalid: the halo.", "small"))  # fmt: skip
    for step in range(steps + 1):
        inset = step * scale
        size = [count * scale - 2 * inset for count in cells]
        parts.append(_rect((left + inset, top + inset), *size, "kept" if step == steps else "halo"))
    middle = (left + cells[0] * scale / 2, top + cells[1] * scale / 2)
    parts.append(_text(middle, f"valid after step {steps}: stored", "middle"))
    parts.append(_text((middle[0], middle[1] + 18), f"{100 * kept[0] * kept[1] / (cells[0] * cells[1]):.0f} % of the "
                       "cells that are computed", "middle small"))  # fmt: skip
    parts += _stage_planes(steps, (left + cells[0] * scale + 50, top))
    return _svg(left + cells[0] * scale + 390, top + max(cells[1] * scale, 230) + 24, parts)


def _stage_planes(steps: int, corner: Point) -> list[str]:
    """Return the planes along z that the stages of a block work on at one time."""
    x, y = corner
    parts = [_text((x, y + 4), "Side view: the block sweeps along z", "")]
    names = ["store", *(f"step {step}" for step in range(steps, 0, -1)), "load"]
    planes = len(names)
    for plane, name in enumerate(names):
        parts.append(_rect((x + 46 * plane, y + 24), 24, 96, "halo" if name.startswith("step") else "cell"))
        parts.append(_text((x + 46 * plane + 12, y + 138), name, "middle small"))
    parts.append(_arrow((x, y + 160), (x + 46 * planes, y + 160), "grey"))
    parts.append(_text((x + 46 * planes, y + 178), "z", "small end"))
    lines = (
        "A plane is complete once the plane above it",
        "has been computed. So each step works one plane",
        "behind the step before it. All steps are on chip:",
        "memory sees one load and one store per launch.",
    )
    return parts + [_text((x, y + 196 + 16 * n), line, "small") for n, line in enumerate(lines)]


def wavefront_picture() -> str:
    """Return which step each row of a CPU tile takes in one pass, from the lag of Esoteric Twist."""
    scheme, steps, rows = SCHEMES["esoteric-twist"], 4, 6
    behind = max(lag(scheme, LATTICES["d3q19"]))
    parts = [_text((20, 28), f"Wavefront: rows of two neighbouring tiles in {steps} steps ({scheme.title})", "title")]
    size, left, top = 34.0, 74.0, 56.0
    for step in range(steps):
        y = top + (steps - 1 - step) * size
        parts.append(_text((left - 10, y + 22), f"step {step + 1}", "end small"))
        for number, kind in ((0, "kept"), (1, "halo")):
            for row in range(rows):
                column = rows * number + row - behind * step
                if column + behind * (steps - 1) >= 0:
                    parts.append(_rect((left + (column + behind * (steps - 1)) * size, y), size, size, kind))
    width = left + (2 * rows + behind * (steps - 1)) * size
    parts.append(_arrow((left, top + steps * size + 16), (width - 30, top + steps * size + 16), "grey"))
    parts.append(_text((width - 30, top + steps * size + 34), "rows along y", "small end"))
    words = (
        f"Blue: first tile, orange: second. Each step lags {behind} row{'s' * (behind > 1)} behind the step before,",
        "so its neighbours are ready and no row is computed twice. A tile stays in a cache for all steps.",
    )
    parts += [_text((20, top + steps * size + 54 + 16 * n), line, "small") for n, line in enumerate(words)]
    return _svg(max(width + 20, 640), top + steps * size + 84, parts)


def loss_picture() -> str:
    """Return the loss breakdown of a recorded profile: the time of an update at each level, measured and predicted."""
    text = (H200 / "profiles" / "many-steps.json").read_bytes()
    profile = msgspec.json.decode(text, type=Profile)
    longest = max(max(one.seconds, one.model_s or 0) for one in profile.rungs)
    left, width, size = 120.0, 420.0, 30.0
    device = f"{profile.environment.device}, {profile.case.lattice.upper()} {profile.case.collision}"
    steps = profile.config["steps"]
    parts = [_text((20, 28), f"Loss breakdown: {device}, {steps} steps per launch", "title")]
    for n, (above, rung) in enumerate(zip((None, *profile.rungs), profile.rungs, strict=False)):
        y = 50.0 + (size + 14) * n
        parts.append(_text((left - 10, y + 20), rung.name, "end"))
        parts.append(_rect((left, y), width * rung.seconds / longest, size, "kept"))
        said = f"{1e12 * rung.seconds:.2f} ps" + (f", {1e12 * (rung.seconds - above.seconds):+.2f}" if above else "")
        parts.append(_text((left + width + 16, y + 20), said, "small"))
        if rung.model_s:
            x = left + width * rung.model_s / longest
            parts.append(_line((x, y - 4), (x, y + size + 4), "two thick"))
    y = 58.0 + (size + 14) * len(profile.rungs)
    parts += [_rect((left, y - 11), 14, 14, "kept"), _text((left + 22, y), "measured", "small")]
    parts += [_line((left + 110, y - 12), (left + 110, y + 4), "two thick"), _text((left + 120, y), "model", "small")]
    return _svg(left + width + 190, y + 18, parts)


def contest_picture() -> str:
    """Return the share of the optimum that strategies still miss over the evaluations, both axes logarithmic."""
    shown = {
        "auto, calibrated": "one thick",
        "list, calibrated": "one dashed",
        "auto, cold": "two thick",
        "list, cold": "two dashed",
        "kernel_tuner hybrid_vndx": "three thick",
        "kernel_tuner genetic_algorithm": "three dashed",
        "optuna TPE": "grey thick",
        "random": "grey dashed",
    }
    found = curves(Contest(kept()))
    left, top, width, height, most, least = 70.0, 50.0, 420.0, 270.0, 0.6, 0.0005

    def at(evaluations: float, missing: float) -> Point:
        across = log(evaluations) / log(MARKS[-1])
        return left + width * across, top + height * log(most / max(missing, least)) / log(most / least)

    parts = ["<style>.dashed { stroke-dasharray: 5 4; }</style>"]
    parts.append(_text((20, 28), "Missing share of the optimum over evaluations, mean over the GPU sets", "title"))
    for mark in MARKS:
        parts.append(_line(at(mark, most), at(mark, least), "cell faint"))
        parts.append(_text((at(mark, least)[0], top + height + 18), f"{mark}", "small middle"))
    for missing in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001):
        parts.append(_line(at(1, missing), at(MARKS[-1], missing), "cell faint"))
        parts.append(_text((left - 8, at(1, missing)[1] + 4), f"{100 * missing:g} %", "small end"))
    for place, (name, kind) in enumerate(shown.items()):
        points = [at(mark, missing) for mark, missing in zip(MARKS, found[name], strict=True)]
        parts += [_line(begin, end, kind) for begin, end in pairwise(points)]
        y = top + 14 + 24 * place
        parts += [_line((left + width + 20, y), (left + width + 50, y), kind)]
        parts.append(_text((left + width + 58, y + 4), name, "small"))
    return _svg(left + width + 260, top + height + 34, parts)


def _svg(width: float, height: float, parts: Iterable[str]) -> str:
    style = _STYLE + "  .thick { stroke-width: 2.5; } line, rect, path { stroke-width: 1.2; }\n"
    body = "\n".join(part for part in parts if part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">\n<style>{style}</style>\n'
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" class="back"/>\n{body}\n'
        "</svg>\n"
    )


def _text(at: Point, text: str, kind: str = "") -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" class="{kind}">{escape(text)}</text>'


def _rect(at: Point, width: float, height: float, kind: str) -> str:
    return f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind}"/>'


def _line(begin: Point, end: Point, kind: str) -> str:
    return f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" class="{kind}"/>'


def _path(steps: str, kind: str) -> str:
    return f'<path d="{steps}" class="{kind}" style="fill: none"/>'


def _arrow(begin: Point, end: Point, kind: str) -> str:
    """Return a line with a filled head."""
    x, y = end[0] - begin[0], end[1] - begin[1]
    length = hypot(x, y) or 1.0
    x, y = x / length, y / length
    base = (end[0] - 8 * x, end[1] - 8 * y)
    head = " ".join(f"{base[0] + s * 3.6 * y:.1f},{base[1] - s * 3.6 * x:.1f}" for s in (1, -1))
    return _line(begin, base, kind + " thick") + f'<polygon points="{end[0]:.1f},{end[1]:.1f} {head}" class="{kind}"/>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
