"""Parts of persistent kernels that keep moments on chip, as C text.

A cut link reflects what the cell itself sends along it, plus the momentum of a moving wall; nothing crosses it. The
moments of what a cell gets back are added to the sums that are buffered for the plane above. Only what c_z^2 has beyond
c_z is kept apart until the cell is complete, because both share one sum.
"""

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts, returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.families.cuda.persistent import Persistent, planes_together
from lbmtune.catalogue.moments.basis import orders, unit_weight, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import entry, moments
from lbmtune.codegen.cuda.shared.expressions import function, reals, word
from lbmtune.codegen.moment_stages import Stage, Sums, times
from lbmtune.codegen.program import SENT_SUMS
from lbmtune.lattice import Lattice, negate

FILE, BUFFERS = "persistent/moments.cu", {SENT_SUMS: f"Real* {SENT_SUMS}"}
"""The skeleton, and the parameters of buffers that kernels of populations do not have."""


def entry_regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the entry."""
    taken = ", ".join(("m[r][v]", *moments.case_scalars(case)))
    return {
        "relax": f"                    relax({taken});",
        **(_wall_regions(case, config) if cuts(case) else {}),
    }


def regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the functions that the entry calls."""
    stage = moments.functions(case.stencil, case.forced, relaxes=case.relaxes)
    return {
        "stage": f"{stage}\n{entering(case.stencil)}",
        "walls": _wall_functions(case, config) if cuts(case) else "",
    }


def scalars(case: Case, _config: Persistent) -> tuple[str, ...]:
    """Return the launch arguments of relaxation and walls."""
    return moments.all_scalars(case)


def constants(case: Case, config: Persistent) -> tuple[str, ...]:
    """Return the constants of tiles of moments."""
    lanes, seats, _ = config.block
    return (
        "constexpr int CELLS = 1;",
        f"constexpr int BLOCK_X = {lanes}, BLOCK_Y = {seats};",
        f"constexpr int WIDE = {config.cells_per_thread}, ROWS = {config.rows}, COLUMN = {config.tile_planes};",
        f"constexpr bool HOLDS = {entry.boolean(bool(config.register_planes))};",
        f"constexpr int TOGETHER = {planes_together(config)};",
        f"constexpr bool FLAT = {entry.boolean(case.stencil.dimensions == 2)};",
        f"constexpr Real unit = {config.unit:.0f};",
        moments.constants(case.stencil),
        _way(case.stencil),
    )


def _way(lattice: Lattice) -> str:
    """Return the function of c_z of each sum that is sent along y; rows are ordered by it."""
    sums = Sums(upright(lattice)).along_y(1)
    falling, level = (sum(row[1] <= c_z for row, _ in sums) for c_z in (-1, 0))
    found = f"sum < {falling} ? -1 : sum < {level} ? 0 : 1"
    return f"__device__ __forceinline__ constexpr int way(const int sum) {{ return {found}; }}"


def entering(lattice: Lattice) -> str:
    """Return the functions that add sums of other tiles to moments, and those at the ends of a tile."""
    stage = Stage(Sums(upright(lattice)), moments.C_SYNTAX)
    sums, every = stage.sums, orders(stage.lattice)
    # what moves down from the first plane is all that the plane below has received; to the last plane nothing does
    fallen = (f"sums[{k}] = {stage.moment((*part, 0))};" for k, part in enumerate(sums.parts[-1]))
    finish = (f"{stage.moment(n)} = current[{sums.waiting(n)}];" for n in every)
    functions = {
        "enter_up(Real (&m)[MOMENTS], const Real (&sums)[ACROSS])": _entering(stage, 1),
        "enter_down(Real (&m)[MOMENTS], const Real (&sums)[ACROSS])": _entering(stage, -1),
        "rise(Real (&m)[MOMENTS], const Real (&sums)[PENDING])": _crossing(stage, 1),
        "fall(Real (&m)[MOMENTS], const Real (&sums)[PENDING])": _crossing(stage, -1),
        "fallen(const Real (&m)[MOMENTS], Real (&sums)[PENDING])": fallen,
        "finish(Real (&m)[MOMENTS], const Real (&current)[CURRENT])": finish,
    }
    return "\n".join(function(head, lines) for head, lines in functions.items())


def _entering(stage: Stage, c_y: int) -> Iterator[str]:
    """Yield what rows add that move along y: for each power of c_x, the sums over c_z with its powers."""
    values = {one: times(stage.sums.factor(one[0]), f"sums[{k}]") for k, one in enumerate(stage.sums.along_y(c_y))}
    for power in range(3):
        rising, level, falling = (values.get(((c_y, c_z), power)) for c_z in (1, 0, -1))
        found = {0: level, 1: None, 2: None}
        if rising and falling:
            yield f"const Real once_{power} = {rising} - {falling}, twice_{power} = {rising} + {falling};"
            found = {1: f"once_{power}", 2: f"twice_{power}"}
            yield f"const Real all_{power} = {' + '.join(filter(None, (f'twice_{power}', level)))};"
            found[0] = f"all_{power}"
        for n in orders(stage.lattice):
            if n[0] == power and (value := found[n[2]]):
                yield f"{stage.moment(n)} {'-' if c_y ** n[1] < 0 else '+'}= {value};"


def _crossing(stage: Stage, c_z: int) -> Iterator[str]:
    """Yield what is added that moves along z."""
    for k, part in enumerate(stage.sums.parts[c_z]):
        for n in orders(stage.lattice):
            if n[:2] == part:
                yield f"{stage.moment(n)} {'-' if c_z ** n[2] < 0 else '+'}= sums[{k}];"


_AT_FACE = ("x == 0", "x == nx - 1", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_WHERE = "const Seat& seat, const int k, const int r, const int v, const int nx, const int ny, const int nz"
_COORDINATES = (
    "const int x = seat.x * WIDE + v, y = FLAT ? seat.bottom + k : seat.line + r, z = FLAT ? 0 : seat.bottom + k;"
)


def _wall_functions(case: Case, config: Persistent) -> str:
    by_words = config.flags == "memory"
    own = "words[(z * ny + y) * nx + x]" if by_words else _at_faces(case, ("wall", "moving"))
    given = f"const Word* words, {_WHERE}" if by_words else _WHERE
    texts = [
        "typedef unsigned int Word;  // bit i: the link by which f_i arrives is cut",
        function(f"cut_at({given})", (_COORDINATES, f"return {own};"), returns="Word"),
    ]
    if case.moving:
        moving = _at_faces(case, ("moving",))
        texts.append(function(f"moving_at({_WHERE})", (_COORDINATES, f"return {moving};"), returns="Word"))
    takes = ("const Word cut", *(["const Word moving"] if case.moving else []), "Real (&still)[LINES]")
    takes += ("Real (&right)[MOVERS]", "Real (&left)[MOVERS]", "Real (&back)[MOMENTS]")
    takes += (*reals(moments.wall_scalars(case)),)
    texts.append(function(f"leave(\n    {', '.join(takes)})", _leave(case)))
    waits = "Real (&m)[MOMENTS], Real (&current)[CURRENT], Real& owed, const Real (&back)[MOMENTS]"
    texts.append(function(f"get_back({waits})", _get_back(case)))
    return "\n".join(texts)


def _wall_regions(case: Case, config: Persistent) -> dict[str, str]:
    where = "seat, k, r, v, nx, ny, nz"
    cut = f"cut_at({'words, ' if config.flags == 'memory' else ''}{where})"
    given = ["cut", *([f"moving_at({where})"] if case.moving else []), "still[v]", "right[v]", "left[v]", "back[r][v]"]
    return {
        "owed": "        Real owed[ROWS][WIDE] = {};",
        "back": "                Real back[ROWS][WIDE][MOMENTS] = {};",
        "leave": f"                        if (const Word cut = {cut}) "
        f"leave({', '.join((*given, *moments.wall_scalars(case)))});",
        "returned": "                        get_back(m[r][v], current[r][v], owed[r][v], back[r][v]);",
        "paid": f"                m[r][v][{_twice(case)}] += owed[r][v];",
    }


def _at_faces(case: Case, kinds: tuple[str, ...]) -> str:
    words = []
    for face, (kind, where) in enumerate(zip(case.faces, _AT_FACE, strict=True)):
        axis, inward = face // 2, -1 if face % 2 else 1
        cut = [i for i, c in enumerate(case.stencil.velocities) if c[axis] == inward]
        if kind in kinds and cut:
            words.append(f"({where} ? {word(cut)} : 0u)")
    return " | ".join(words) or "0u"


def _twice(case: Case) -> int:
    return orders(upright(case.stencil)).index((0, 0, 2))


def _leave(case: Case) -> Iterator[str]:
    """Yield, link by link, what is sent and thereby missing there, and the moments with which it is reflected."""
    lattice = upright(case.stencil)
    sums = Sums(lattice)
    for i in returning(case):
        c, place = lattice.velocities[i], moments.sent_back(sums, i)
        yield f"if (cut >> {i} & 1u) {{"
        gain = ""
        if i in moving_links(case):
            gain = f" + (moving >> {i} & 1u ? {moments.gained(case, i)} : Real(0))"
        yield f"    const Real f = {unit_weight(lattice, negate(c))} * ({place}{gain});"
        yield f"    {place} = 0;"
        for k, n in enumerate(orders(lattice)):
            if sign := c[0] ** n[0] * c[1] ** n[1] * c[2] ** n[2]:
                yield f"    back[{k}] {'+' if sign > 0 else '-'}= f;"
        yield "}"


def _get_back(case: Case) -> Iterator[str]:
    """Yield the lines after the plane below is complete and this plane has all that arrives but from above."""
    lattice = upright(case.stencil)
    sums, powers = Sums(lattice), orders(lattice)
    once, twice = powers.index((0, 0, 1)), _twice(case)
    yield f"m[{twice}] += owed;"
    for k, n in enumerate(powers):
        if k != twice:
            yield f"current[{sums.waiting(n)}] += back[{k}];"
    yield f"owed = back[{twice}] - back[{once}];"
