"""Values, texts and files for `scripts.fuzz`, from a generator of random numbers."""

import base64
import hashlib
import io
import json
import random
import zlib
from contextlib import suppress
from typing import Any

import numpy as np

from lbmtune.catalogue.config import FAMILIES, from_flat, knobs
from lbmtune.catalogue.knobs import scalar
from lbmtune.errors import InputError

Random = random.Random
TOKENS = (
    *(
        "",
        "0",
        "-1",
        "1",
        "2",
        "3",
        "99999999999999999999",
        "1e308",
        "1e400",
        "nan",
        "inf",
        "-inf",
        "true",
        "false",
        "null",
    ),
    *(
        '""',
        '"x"',
        "[]",
        "{}",
        "[[]]",
        "[1,2,3]",
        '"\\u0000"',
        '"[/b]"',
        '"../../x"',
        '"a\\nb"',
        '"\\u001b[31m"',
        "'''",
    ),
    *(
        "1979-05-27",
        "0x10",
        "1_000",
        "07:32:00",
        '"d2q9"',
        '"d3q27"',
        '"cumulant"',
        '"pull"',
        '"all"',
        '"auto"',
        "5e-324",
    ),
    *(
        '"128x128x128"',
        '"1x1x1"',
        '"0x0x0"',
        '"-1x2x3"',
        '"99999999x99999999x99999999"',
        '"ⅷx٣x3"',
        '"\uff11\uff12x\uff18x\uff18"',
        "-0.0",
    ),
    *('"file:path=/etc/passwd"', '"packing:fraction=nan:radius=0"', '"packing:fraction=0.5:radius=-8:seed=-1"', "²"),
    *(
        "9" * 5000,
        '"' + "A" * 70000 + '"',
        "[" * 3000,
        "1" + "0" * 400,
        '"\\u202e"',
        '"\\ud800"',
        "a b",
        "a,b",
        "x=1",
        "=",
    ),
)
CASES = (
    *('geometry = "sphere:diameter=0"', 'geometry="sandstone"', 'geometry="blocks:size=0"', 'geometry="file:path="'),
    *('faces = ["velocity","pressure","wall","wall","wall","wall"]', "inlet_velocity = [1e308, 0, 0]", 'axis = "q"'),
    *("lid = 0.5", "force = 1e308", "magic = 1e-320", "velocity_scale = 0.5", "reynolds = 1e-308", "viscosity = 1e308"),
    *(
        "viscosity = 5e-324",
        "outlet_density = 0.0",
        '[[case.patches]]\nface="x-"\nkind="velocity"',
        "wall_velocity = nan",
    ),
    *(
        'geometry = "packing:fraction=0.99999:radius=1e-9:seed=1"',
        'geometry = "packing:fraction=0.5:radius=1000000:seed=1"',
    ),
    *('geometry="sandstone:porosity=nan"', 'geometry="file:path=.:shape=8x8x8"', 'geometry="file:path=a\\u0000b.npy"'),
    *(
        'geometry="file:path=/dev/zero:shape=8x8x8"',
        "force = [nan, 0, 0]",
        "wall_velocity = [9, 0, 0]",
        "lid = [inf, 0, 0]",
    ),
)
_KNOBS = {
    "scheme": (
        "aa",
        "pull",
        "push",
        "esoteric-pull",
        "esoteric-twist",
        "two-step",
        "swap",
        "swap-ordered",
        "ghost-cell",
    ),
    "family": ("direct", "column", "sparse", "temporal-blocking", "persistent", "face-exchange", "wavefront", "x"),
    "layout": ("soa", "aos", "aosoa", "bundle", "tiled", "rows", "x"),
    "storage": ("fp32", "fp64", "fp16s", "fp16c", "bf16"),
    "block": ("64x1x1", "0x0x0", "1024x1024x1024", "-1x1x1", "64", "64x1x1x1", "8x8x8"),
    "steps": ("1", "2", "8", "-3", "0", "9" * 24, "1e3"),
    "vector_bits": ("0", "256", "512", "7"),
    "threads": ("all", "1", "0", "-1", "4096", "²"),
    "padding": ("0", "16", "-16", "9" * 20),
    "parallel_loop": ("z", "zy", "tile"),
    "tile_y": ("0", "-1", "1000000000000"),
    "compute": ("fp32", "fp64"),
    "cells_per_thread": ("1", "2", "4", "3"),
    "representation": ("populations", "moments"),
    "flags": ("memory", "compiled"),
    "order": ("row", "z-curve", "tile"),
    "prefetch": ("0", "1", "1000000"),
    "z_cells": ("1", "4", "0", "9" * 12),
    "max_registers": ("0", "1", "255", "-1"),
    "width": ("1", "32", "0", "3"),
    "march": ("0", "8"),
}
_NAMES = ("", "x", "[/b]", "backend", "\x1b[2J", "\u017fcheme", "\u202e", "case.domain", "a" * 300)
_TEXTS = (
    "0123456789ab",
    "0123456789AB",
    "x.json",
    ".",
    "/",
    "/dev/null",
    "a" * 100_000,
    "=" * 50,
    "\u202e=1",
    "9" * 5000,
)
_FIELDS = (
    *("case.domain", "case.lattice", "storage", "case.collision", "case.geometry", "protocol.finalists", "budget.time"),
    *(
        "axes.cpu[9].steps",
        "axes.cpu[0].steps",
        "axes.cpu[-1].steps",
        "case.patches",
        "name",
        "axes",
        "case",
        "",
        "seed",
    ),
    *("case.faces", "case.relaxation_rate", "case.force", "case.wall_velocity", "objective", "accuracy.max_error", "x"),
)


def damaged(content: bytes, r: Random) -> bytes:
    """Return bytes of which some are other ones, missing, doubled or cut off."""
    found = bytearray(content)
    for _ in range(r.choice((1, 1, 2, 4, 16))):
        found = found or bytearray(b"x")
        at = r.randrange(len(found))
        match r.randrange(6):
            case 0:
                found[at] = r.randrange(256)
            case 1:
                del found[at : at + r.choice((1, 2, 8, 64))]
            case 2:
                found[at:at] = r.randbytes(r.choice((1, 4)))
            case 3:
                begin = r.randrange(len(found))
                found[at:at] = found[begin : begin + r.choice((4, 32, 200))]
            case 4:
                del found[at:]
            case 5:
                found[at : at + 1] = r.choice(
                    (b"[", b"]", b'"', b"=", b"\n", b"{", b"}", b"\0", b"\xff", b"x", b"9", b"-")
                )
    return bytes(found)


def toml(text: str, r: Random) -> bytes:
    """Return a file of keys and values of which some are other ones."""
    lines = text.splitlines()
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        places = [n for n, line in enumerate(lines) if "=" in line and not line.lstrip().startswith("#")]
        if not places:
            break
        at = r.choice(places)
        key, _, value = lines[at].partition("=")
        value, token = value.split("#")[0].strip(), r.choice(TOKENS)
        match r.randrange(8):
            case 0 | 1 | 2 | 3:
                lines[at] = f"{key}= {token}"
            case 4:
                lines.insert(at, lines[at])
            case 5:
                del lines[at]
            case 6:
                lines[at] = f"{key.strip()}{r.choice(('x', '.', ' ', '[', '.a.b', ''))} = {value}"
            case 7:
                lines[at] = f"{key}= {value[:-1]}, {token}]" if value.startswith("[") else f"{key}= [{value}, {token}]"
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return each container of a tree with each of its keys."""
    items = list(tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ())
    return [(tree, key) for key, _ in items] + [place for _, value in items for place in _places(value)]


def _number(value: float, r: Random) -> float:
    if isinstance(value, int):
        return r.choice((0, -1, 1, value + 1, -value, value * 1000, 2**31, 2**63 - 1, 10**30))
    return r.choice((0.0, -value, value * 1e-300, 1e308, value * 1e12, 5e-324, 1.0))


def _other(value: Any, r: Random) -> Any:
    """Return another value, more often of the same type than not."""
    if isinstance(value, bool) or value is None or r.random() < 0.3:
        return r.choice(
            (None, True, -1, 0, 1, 2**63, 10**30, 1e308, 5e-324, "", "x", "\x1b[31m", "\u202e", [], {}, [[]], {"a": 1})
        )
    if isinstance(value, (int, float)):
        return _number(value, r)
    if isinstance(value, str):
        return r.choice(
            ("", "x", value + " ", value[1:], value * 3, "\x00", "A" * 3000, "pull", "cpu", "cuda", "1e5", "²")
        )
    if isinstance(value, list):
        return r.choice(([], value[:-1], value * 2, [value], value[::-1]))
    return {}


def _changed(tree: Any, r: Random) -> None:
    """Change some places of a tree: any, or, so that what is read afterwards meets it, the numbers alone."""
    numbers = [(part, key) for part, key in _places(tree) if type(part[key]) in (int, float)]
    if numbers and r.random() < 0.5:
        for container, key in r.choices(numbers, k=r.choice((1, 1, 2, 4))):
            container[key] = _number(container[key], r)
        return
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        places = _places(tree)
        if not places:
            return
        container, key = r.choice(places)
        match r.randrange(8):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[r.choice(("x", "", "\x1b"))] = container.pop(key)
            case 2:
                container[key] = r.choice(places)[0]
                if len(repr(tree)) > 1 << 20 or "..." in repr(container):
                    container[key] = 0
            case _:
                container[key] = _other(container[key], r)


def json_tree(tree: Any, r: Random) -> bytes:
    """Return a tree as JSON with some values missing, renamed, of other types, or extreme."""
    copy = json.loads(json.dumps(tree))
    _changed(copy, r)
    return json.dumps(copy).encode()


def best(tree: dict[str, Any], r: Random) -> bytes:
    """Return a best.json with other values, of which the digest is right again more often than not."""
    part = r.choice(
        (tree, tree, tree["kernel"], tree["case"], tree["configuration"], tree["storage"], tree["expected"])
    )
    _changed(part, r)
    kernel = tree.get("kernel")
    if isinstance(kernel, dict) and r.random() < 0.7:
        parts = (kernel.get("target"), *(kernel.get("options") or ()), kernel.get("source"))
        kernel["source_digest"] = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()
    if r.random() < 0.3 and isinstance(tree.get("configuration"), dict):
        with suppress(InputError, TypeError, KeyError, ValueError, AttributeError):
            tree["key"] = from_flat(tree["configuration"]).key
    return json.dumps(tree).encode()


def configuration(r: Random) -> str:
    """Return the text of a configuration: values that a study searches for a family, or any."""
    if r.random() < 0.5:
        backend = r.choice(tuple(FAMILIES))
        family = r.choice(tuple(FAMILIES[backend]))
        own = r.sample(knobs(FAMILIES[backend][family]), r.choice((1, 2, 3)))
        said = (f"{one.name}={scalar(r.choice(one.search))}" for one in own if one.search)
        return ",".join((f"backend={backend}", f"family={family}", *said))
    parts = []
    for _ in range(r.choice((1, 2, 3, 5))):
        name = r.choice(tuple(_KNOBS))
        value = r.choice(TOKENS)[:200] if r.random() < 0.15 else r.choice(_KNOBS[name])
        parts.append(f"{r.choice(_NAMES) if r.random() < 0.05 else name}={value}")
    text = r.choice((",", ",", ",", ",", ", ", ",,", ";", " ")).join(parts)
    if r.random() < 0.1:
        text = damaged(text.encode(), r).decode("utf-8", "replace").replace("\0", "")
    return r.choice(_TEXTS) if r.random() < 0.03 else text


def override(r: Random) -> str:
    """Return the text of --set."""
    return f"{r.choice(_FIELDS)}={r.choice(TOKENS)[:3000]}"


_VERBS = (
    "explain",
    "render",
    "predict",
    "vary",
    "plan",
    "list",
    "report",
    "compare",
    "export",
    "rank",
    "study",
    "devices",
    "claims",
    "exlpain",
)
_OPTIONS = (
    *(
        "--study",
        "--set",
        "--max-footprint",
        "--max-error",
        "--max-power",
        "--member",
        "--device",
        "--machine",
        "--studies",
        "--json",
        "--geometry",
        "--top",
        "--compile",
        "--dry-run",
        "-q",
        "-o",
    ),
    *(
        "--trials",
        "--time",
        "--objective",
        "--seed",
        "--nope",
        "--help",
        "-d",
        "--output",
        "--vary",
        "--memory",
        "--devices",
    ),
)


def command(r: Random) -> tuple[str, ...]:
    """Return a verb with options. What would measure or search is given a machine that is none, so that it ends."""
    verb = r.choice(_VERBS)
    words = [token.strip('"').replace("\0", "")[:500] for token in TOKENS]
    given = [verb]
    if verb not in ("list", "devices", "study", "rank", "claims"):
        given.append(r.choice((configuration(r).replace("\0", ""), r.choice(words))))
    for _ in range(r.choice((0, 1, 2, 4))):
        option = r.choice(_OPTIONS)
        given.append(option)
        if option not in ("--json", "--help"):
            given.append(override(r) if option == "--set" else r.choice(words))
    if verb in ("study", "devices", "claims", "rank"):
        given += ["--device", "none", "--nope"]
    return tuple(one.encode("utf-8", "replace").decode() for one in given)


def voxels(r: Random) -> tuple[str, bytes]:
    """Return the name and the content of a voxel file, most often damaged."""
    cells = np.array([r.random() < 0.3 for _ in range(512)], np.uint8).reshape(8, 8, 8)
    match r.randrange(4):
        case 0:
            made = io.BytesIO()
            np.save(made, cells.astype(r.choice(("u1", "i2", "f4", "f8", "?", "c8", "U1", "S1"))))
            name, content = "g.npy", made.getvalue()
        case 1:
            name, content = r.choice(("g.raw", "G.RAW")), cells.astype(r.choice(("u1", "<u2"))).tobytes()
        case 2:
            data = " ".join(
                r.choice(("0", "1", "300", "-1", "nan", "x")) if r.random() < 0.01 else "1" for _ in range(512)
            )
            name, content = "g.vti", _vti('format="ascii"', data, r)
        case _:
            packed = zlib.compress(cells.tobytes())
            head = np.array([1, 512, 512, len(packed)], r.choice(("<u4", "<u8"))).tobytes()
            text = (base64.b64encode(head) + base64.b64encode(packed)).decode()
            name, content = "g.vti", _vti('format="binary"', text, r)
    return name, damaged(content, r) if r.random() < 0.8 else content


def _vti(form: str, data: str, r: Random) -> bytes:
    start, kind = r.choice(("", "", ' encoding="nope"')), r.choice(("UInt8", "UInt8", "Int64", "Float32", "String"))
    compressor = 'compressor="vtkZLibDataCompressor"' if "binary" in form else ""
    return (
        f'<?xml version="1.0"{start}?><VTKFile type="ImageData" {compressor} header_type="UInt32"><ImageData '
        f'WholeExtent="0 8 0 8 0 8"><Piece Extent="0 8 0 8 0 8"><CellData Scalars="solid"><DataArray type="{kind}" '
        f'Name="solid" {form}>{data}</DataArray></CellData></Piece></ImageData></VTKFile>'
    ).encode()
