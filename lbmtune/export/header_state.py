"""The part of a header that reads and writes states: codes, tables, places, and the index list."""

from collections.abc import Iterable, Iterator

from lbmtune.catalogue.moments.basis import powers, shares
from lbmtune.catalogue.precision import Codes
from lbmtune.codegen.skeleton import skeleton
from lbmtune.export.c_text import braced, filled, lines_of, matrix, real, table_rows, truth
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Links, Location, Storage


def number_codes(storage: Storage, both: str) -> str:
    """Return the conversion of stored values to numbers and back. both: what begins a function of host and device."""
    if storage.codes is None:
        return (
            f"{both} double decoded(const stored value) {{ return value; }}\n"
            f"{both} stored encoded(const double value) {{ return (stored)value; }}"
        )
    codes = Codes(
        storage.codes.exponent_bits, storage.codes.mantissa_bits, storage.codes.bias, special=storage.codes.infinite
    )
    infinity = ((1 << codes.exponent_bits) - 1) << codes.mantissa_bits
    return filled(
        "codes",
        both=both,
        exponent_bits=codes.exponent_bits,
        mantissa_bits=codes.mantissa_bits,
        bias=codes.bias,
        special=truth(codes.special),
        infinity=infinity,
        largest=real(codes.largest),
        most_code=infinity if codes.special else 0x7FFF,
        saturates="" if codes.special else "; beyond the largest number, that one",
    )


def tables(best: Best) -> dict[str, str]:
    """Return the fields of the tables that belong to the state, and their values."""
    storage = best.storage
    if storage.moments:
        count, lattice = len(storage.moments), best.case.stencil
        return {
            "table_fields": f"    double to_moments[{count}][directions], to_populations[directions][{count}];",
            "table_values": f"     {matrix(powers(lattice))}, \\\n     {matrix(shares(lattice))}",
        }
    places = [
        [[_place(one, cut=False), _place(one, cut=True)] for one in _in_order(phase)] for phase in storage.locations
    ]
    phases = (table_rows(braced(map(braced, pair)) for pair in phase) for phase in places)
    return {
        "table_fields": f"    int location[{len(places)}][directions][2][4];  // slot, offset; if the link is cut",
        "table_values": f"     {braced(phases)}",
    }


def _in_order(phase: Iterable[Location]) -> list[Location]:
    return sorted(phase, key=lambda one: one.direction)


def _place(one: Location, *, cut: bool) -> tuple[int, ...]:
    return (one.cut_slot, *one.cut_offset) if cut else (one.slot, *one.offset)


def populations(storage: Storage, both: str, *, implicit: bool) -> str:
    """Return the places of populations, and how they are written and read."""
    return filled(
        "populations",
        both=both,
        scale=real(storage.scale),
        element=lines_of(_listed_cell() if storage.links else _boxed_cell(storage), 4),
        index=storage.index,
        reader_adds=truth(storage.wall_term == "read"),
        solids_cut=truth(not implicit),
        shift=storage.shift,
    )


def _listed_cell() -> Iterator[str]:
    yield "(void)cut;"
    yield "const long long X = b->node[number_of(b, neighbour(b, at, place + 1))], Y = 0, Z = 0;"
    yield "if (X < 0) return -1;"


def _boxed_cell(storage: Storage) -> Iterator[str]:
    """Yield the storage coordinates of a place."""
    yield "(void)cut;"
    blocks = storage.blocks or (0, 0, 0)
    axes = zip("xyz", storage.ghost, blocks, storage.origin, strict=True)
    for axis, (name, ghost, block, origin) in enumerate(axes, 1):
        moved = f"at.{name} + place[{axis}]"
        wraps = f"wrapped({moved}, b->n{name})"
        yield f"const long long {name} = {f'cut ? {moved} : {wraps}' if ghost else wraps};"
        found = f"{name} + {origin}"
        if block:
            found = f"(({name} + {block}) / {block} - 1) * {block + 2} + ({name} + {block}) % {block} + 1"
        yield f"const long long {name.upper()} = {found};"


def moments(best: Best, both: str) -> str:
    """Return the places of moments, and how they are written and read."""
    places = (f"case {k}: return {one.index};" for k, one in enumerate(best.storage.moments))
    scale = real(best.storage.scale)
    return filled("moments", both=both, scale=scale, moments=len(best.storage.moments), places=lines_of(places, 8))


def index_list(links: Links) -> str:
    """Return what makes the list of indirect addressing from solid cells."""
    pointers = (*links.pointers, *links.chains)
    rows = (
        f"{{{braced(p.open)}, {braced(p.cut)}, {braced(p.link or (0, 0, 0))}, {truth(p.link is not None)}}},"
        for p in pointers
    )
    return filled(
        "index_list",
        pointers=lines_of(rows, 4),
        kept=len(links.pointers),
        all=len(pointers),
        masked=len(links.masked),
        masked_links=", ".join(map(braced, links.masked)) or "{0, 0, 0}",
        moves=int(links.rows - len(links.pointers) - bool(links.masked)),
        chased=truth(links.chased),
        granule=links.granule,
        rows=links.rows,
        order=skeleton(f"export/orders/{links.order}.h.in").strip(),
    )
