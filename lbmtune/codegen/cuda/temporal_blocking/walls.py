"""Cut links of temporal blocking, by faces of the box or by solid cells, as C text.

What links reflect to a cell is summed up as moments: each link adds u_i (p(-c_i) + 6 c_i . u) times powers of c_i, with
the velocity u of a moving wall (`wall_moments`). In two dimensions links are taken in groups of one c_x, of which few
are cut in most warps. See kernels/cuda/temporal_blocking/walls.cu.
"""

from collections.abc import Iterator, Sequence

from lbmtune.catalogue.boundaries.bounce_back_routes import returned_sums, returning
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.moments.basis import orders, unit_weight, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import streamed
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.entry import boolean
from lbmtune.codegen.cuda.shared.expressions import function, word
from lbmtune.codegen.cuda.shared.moments import where_any
from lbmtune.codegen.cuda.temporal_blocking import populations, wall_faces, wall_moments
from lbmtune.codegen.moment_stages import Sums, times
from lbmtune.lattice import Lattice

_AXES = {3: (0, 1, 2), 2: (0, 2, 1)}
"""Axes of a case that stand for x, y and z in the text, by its dimensions: blocks go up along z."""
_COORDINATES = {3: ("first_x + v", "first_y + r", "here_z"), 2: ("first_x + v", "0", "here_y")}
_EXTENTS = {3: ("nx", "ny", "nz"), 2: ("nx", "1", "ny")}
_OWN = "const Word own = unless_silent(links_of(links, t, r, v, here_z, ny, nz));"
_TAKE = f"{_OWN}\nlater = take_back(current[t][r][v], own, back);"
_ENTRY = "temporal_blocking/entry_walls.cu"


def functions(case: Case, config: TemporalBlocking) -> str:
    """Return the functions that find cut links, and those that reflect."""
    folder, read = "temporal_blocking", config.flags == "memory"
    if _adds_moments(case, config):
        reflect = wall_moments.functions(case)
    else:
        reflect = _reflect(case) if config.of_moments else populations.reflection(case)
    regions = {
        "faces": _links(case, config),
        "reflect": reflect,
        "known": fill(f"{folder}/{'wall_flags' if read else 'wall_faces'}.cu", {}),
        "sides": "",
        "rows": "",
    }
    if _sides(case, config):
        regions["sides"] = fill(f"{folder}/wall_sides.cu", {"faces": wall_faces.side_functions(case)})
    if _by_rows(case, config):
        regions["rows"] = fill(f"{folder}/wall_rows.cu", {"faces": wall_faces.row_functions(case)})
    return fill(f"{folder}/walls.cu", regions)


def _adds_moments(case: Case, config: TemporalBlocking) -> bool:
    """Return whether reflected moments are added to what arrives (`wall_moments`)."""
    return config.of_moments and case.stencil.dimensions == 3


def _by_rows(case: Case, config: TemporalBlocking) -> bool:
    """Return whether rows at one face across y have code of their own."""
    return _adds_moments(case, config) and config.flags != "memory" and case.walled_across(1)


def _sides(case: Case, config: TemporalBlocking) -> bool:
    """Return whether warps at one face across x have code of their own."""
    return _adds_moments(case, config) and case.walled_across(0)


def entry_variants(config: TemporalBlocking) -> dict[str, str]:
    """Return the regions of an entry in three dimensions whose links can be cut."""
    words = variants(_ENTRY, {}, inside="words") if config.flags == "memory" else {}
    return variants(_ENTRY, {}) | words


def entry_2d_variants(case: Case, config: TemporalBlocking, regions: dict[str, str]) -> dict[str, str]:
    """Return the regions of an entry in two dimensions whose links can be cut; regions: those that all entries have."""
    file = "temporal_blocking/entry_2d.cu"
    found = variants(file, {"return": _reflection_of_cell(case, config)}, inside="walls")
    if complete := populations.completed(case, "m[v]", ("first_x + v", "here_y", "0")):
        found["relax"] = f"if (cuts) {complete}\n{regions['relax']}"
    return found | (variants(file, {}, inside="words") if config.flags == "memory" else {})


def stages(case: Case, config: TemporalBlocking, regions: dict[str, str]) -> dict[str, str]:
    """Return the region of the stages in three dimensions: a branch for each kind of cut links of a warp."""
    file = "temporal_blocking/entry_3d.cu"
    ways = ((way, fill(file, regions | own, inside="stages")) for way, own in _ways(case, config, regions))
    return {"stages": " else ".join(f"if (way == {way}) {{\n{text}\n}}" for way, text in ways)}


def _ways(case: Case, config: TemporalBlocking, regions: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each kind of cut links of a warp, with the regions that its stages have in addition."""
    yield "OPEN", {}
    for side, way in enumerate(wall_faces.WAYS if _sides(case, config) else ()):
        texts = wall_faces.over_side(case, side), wall_faces.enter_side(side), wall_faces.take_side(side)
        yield way, dict(zip(("returning", "enter", "returned"), texts, strict=True))
    yield "MIXED", _mixed(case, config, regions)


def _mixed(case: Case, config: TemporalBlocking, regions: dict[str, str]) -> dict[str, str]:
    inner = {**regions, "return": _reflection_of_cell(case, config), "take": _TAKE}
    if _adds_moments(case, config):
        word, _ = _cell_bits(config)
        inner["returns"] = f"{word} returns = 0;  // bits of cells: whether anything returns to lanes of the warp"
    mixed = variants(_ENTRY, inner, inside="stage")
    if _adds_moments(case, config):
        mixed |= variants("temporal_blocking/wall_moments.cu", inner)
    if config.flags != "memory":
        mixed["silence"] = ""
    if complete := populations.completed(case, "m[r][v]", ("first_x + v", "first_y + r", "here_z")):
        mixed["relax"] = f"{complete}\n{regions['relax']}"
    return mixed


def _cell_bits(config: TemporalBlocking) -> tuple[str, str]:
    """Return the type of a word with a bit for each cell of a thread, and its number one."""
    wide = config.rows * config.cells_per_thread > 32
    return ("unsigned long long", "1ull") if wide else ("unsigned", "1u")


def _faces(case: Case) -> Iterator[tuple[int, str]]:
    for axis, name in zip(_AXES[case.stencil.dimensions], "XYZ", strict=True):
        yield from ((2 * axis, f"{name}_LOW"), (2 * axis + 1, f"{name}_HIGH"))


def _links(case: Case, config: TemporalBlocking) -> str:
    lines = [f"constexpr bool BY_SIDE = {boolean(_sides(case, config))};"]
    lines += [
        f"constexpr bool WALLED_{name} = {boolean(case.walled_across(axis))};"
        for axis, name in zip(_AXES[case.stencil.dimensions][1:], "YZ", strict=True)
    ]
    for face, name in _faces(case):
        lines.append(f"constexpr Word CUT_{name} = {_mask(case, face, ('wall', 'moving'))};")
        if case.moving:
            lines.append(f"constexpr Word MOVING_{name} = {_mask(case, face, ('moving',))};")
    return "\n".join(lines)


def _mask(case: Case, face: int, kinds: Sequence[str]) -> str:
    axis, high = divmod(face, 2)
    cuts_links = streamed(case.faces[face]) in kinds
    return word(i for i, c in enumerate(case.stencil.velocities) if cuts_links and c[axis] == (-1 if high else 1))


def _reflection_of_cell(case: Case, config: TemporalBlocking) -> str:
    """Return the reflection of a cell, within the loops over rows and cells."""
    flat, added = case.stencil.dimensions == 2, _adds_moments(case, config)
    back = wall_moments.ADDED_TO if added else ("back[v]" if flat else "back",)
    given = (*back, "own", *(["moving"] if case.moving else []), *moments.sent(), *moments.wall_scalars(case))
    moving = f"const Word moving = {_moving(case)};\n" if case.moving else ""
    leave = f"{moving}reflect({', '.join(given)});"
    if not added:
        return leave if flat else f"{_OWN}\n{leave}"
    _, one = _cell_bits(config)
    if _by_rows(case, config):
        return wall_faces.leave_row(case, f"{_OWN}\n{leave}", one)
    return f"{_OWN}\nif (anywhere(own)) {{\n{wall_moments.kept_sums(leave, one)}\n}}"


def _moving(case: Case) -> str:
    """Return the links of a cell that moving faces cut.

    Without solid cells the link perpendicular to a face tells whether the cell is at the face.
    """
    if not case.geometry:
        moving = [(face, name) for face, name in _faces(case) if case.faces[face] == "moving"]
        return " | ".join(f"(own >> {_straight(case, face)} & 1u ? MOVING_{name} : 0u)" for face, name in moving)
    flat = case.stencil.dimensions
    along = zip("XYZ", _COORDINATES[flat], _EXTENTS[flat], strict=True)
    return " | ".join(f"at_faces({i}, {n}, WALLED_{a}, MOVING_{a}_LOW, MOVING_{a}_HIGH)" for a, i, n in along)


def _straight(case: Case, face: int) -> int:
    """Return the direction that arrives through a face perpendicularly."""
    axis, high = divmod(face, 2)
    return case.stencil.velocities.index(tuple((-1 if high else 1) * (n == axis) for n in range(3)))


def _reflect(case: Case) -> str:
    """Return the functions that reflect in two dimensions, by groups of one c_x."""
    sums, places = Sums(upright(case.stencil), split=True), returned_sums(case)
    sides = [c_x for c_x in (1, -1, 0) if any(place[0] == c_x for place in places)]
    groups = {c_x: [i for i in returning(case) if case.stencil.velocities[i][0] == c_x] for c_x in sides}
    left = [line for c_x, links in groups.items() for line in where_any(links, _leave(case, sums, c_x, links))]
    taken = [line for c_x, links in groups.items() for line in where_any(links, _take(case, sums, c_x))]
    twice = orders(sums.lattice).index((0, 0, 2))
    return "\n".join(
        (
            f"constexpr int RETURNED = {len(places)}, APART = 1, TWICE_UP = {twice};",
            moments.reflecting(case, "reflect", left, *moments.cut_words(case)),
            "// Returns what the moment of c_z^2 is owed yet, beyond what that of c_z got: both wait in one sum.",
            function(moments.TAKE_BACK, ["Real owed = 0;", *taken, "return owed;"], returns="Real"),
        )
    )


def _leave(case: Case, sums: Sums, c_x: int, links: Sequence[int]) -> Iterator[str]:
    """Yield the sums of what links of one c_x reflect, over powers of c_y and c_z, and where they are stored."""
    found = dict[tuple[int, int], str]()
    for i in links:
        yield f"const Real f{i} = {moments.where_cut(case, sums, i)};"
    yield from _sums(sums.lattice, links, found)
    for k, place in enumerate(returned_sums(case)):
        if place[0] == c_x:
            yield f"back[{k} * APART] = {found[place[1:]]};"


def _take(case: Case, sums: Sums, c_x: int) -> Iterator[str]:
    for k, (side, *powers) in enumerate(returned_sums(case)):
        if side != c_x:
            continue
        yield f"const Real sum{k} = back[{k} * APART];"
        for n in orders(sums.lattice):
            if n[1:] == tuple(powers) and (c_x or not n[0]):
                yield f"current[{sums.waiting(n)}] {'-' if c_x ** n[0] < 0 else '+'}= sum{k};"


def _sums(lattice: Lattice, links: Sequence[int], found: dict[tuple[int, int], str]) -> Iterator[str]:
    """Yield the sums of u_i times powers of c_y and c_z; `found` gets the name of each that is not always zero."""
    velocities = lattice.velocities
    for axis, name, powers in ((1, "y", ((1, 0), (2, 0))), (2, "z", ((0, 1), (0, 2)))):
        up, down = (moments.weighted(lattice, [i for i in links if velocities[i][axis] == way]) for way in (1, -1))
        if up or down:
            yield f"const Real {name}_up = {up or '0'}, {name}_down = {down or '0'};"
            yield f"const Real odd_{name} = {name}_up - {name}_down, even_{name} = {name}_up + {name}_down;"
            found[powers[0]], found[powers[1]] = f"odd_{name}", f"even_{name}"
    rest = moments.weighted(lattice, [i for i in links if not velocities[i][1]])
    yield f"const Real all = {' + '.join(filter(None, ('even_y' if (2, 0) in found else '', rest)))};"
    found[0, 0] = "all"
    signs = {i: velocities[i][1] * velocities[i][2] for i in links}
    mixed = sorted((i for i, sign in signs.items() if sign), key=lambda i: -signs[i])
    if mixed:
        (factor,) = {unit_weight(lattice, velocities[i]) for i in mixed}
        total = " ".join(f"{'-' if signs[i] < 0 else '+'} f{i}" for i in mixed).removeprefix("+ ")
        yield f"const Real mixed = {times(factor, f'({total})') if factor > 1 else total};"
        found[1, 1] = "mixed"
