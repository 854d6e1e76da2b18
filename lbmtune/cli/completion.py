"""Completion of values in a shell: knobs and their values, families, studies, machines and other names."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO

_WORDS, _PLACE = "COMP_WORDS", "COMP_CWORD"
Complete = Callable[[str], list[str]]
"""Returns what a word may become, from how it begins."""


def configs(word: str) -> list[str]:
    """Return values of knobs: 'scheme=aa,blo' -> 'scheme=aa,block='."""
    before, comma, last = word.rpartition(",")
    return [f"{before}{comma}{one}" for one in _settings(last, _knobs())]


def settings(word: str) -> list[str]:
    """Return fields of a study file, or values of knobs: 'stor' -> 'storage='."""
    from lbmtune.files.studyfile import TABLES

    fields = {f"{table}.{key}": () for table, keys in TABLES.items() if table for key in keys}
    return _settings(word, {**_knobs(), **fields})


def knobs(word: str) -> list[str]:
    """Return names of knobs."""
    return _begun(word, _knobs())


def families(word: str) -> list[str]:
    """Return names of families, of a list with commas the last."""
    from lbmtune.catalogue.config import FAMILIES
    from lbmtune.records.spec import ALL_FAMILIES

    before, comma, last = word.rpartition(",")
    names = (ALL_FAMILIES, *dict.fromkeys(name for several in FAMILIES.values() for name in several))
    return [f"{before}{comma}{one}" for one in _begun(last, names)]


def studies(word: str) -> list[str]:
    """Return names of shipped studies."""
    from lbmtune.files.shipped import shipped_studies, spaces

    return _begun(word, {**shipped_studies(), **spaces()})


def configs_or_studies(word: str) -> list[str]:
    """Return values of knobs, and names of shipped studies."""
    return [*configs(word), *studies(word)]


def machines(word: str) -> list[str]:
    """Return names of shipped descriptions of devices."""
    from lbmtune.api.machines.shipped import shipped_machines

    return _begun(word, shipped_machines())


def knobs_and_families(word: str) -> list[str]:
    """Return names of knobs and of families."""
    return [*knobs(word), *families(word)]


def one_of(names: Iterable[str]) -> Complete:
    """Return the completion of one of some names."""
    return lambda incomplete: _begun(incomplete, names)


def of_case(kind: str) -> Complete:
    """Return the completion of a lattice, a collision or a flow."""

    def found(incomplete: str) -> list[str]:
        from lbmtune.catalogue.collisions import COLLISIONS
        from lbmtune.catalogue.problem.flows import FLOWS
        from lbmtune.lattice import LATTICES

        return _begun(incomplete, {"collision": COLLISIONS, "flow": FLOWS, "lattice": LATTICES}[kind])

    return found


def _begun(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(word)]


def _settings(word: str, known: Mapping[str, Sequence[str]]) -> list[str]:
    name, equals, value = word.partition("=")
    if not equals:
        return [f"{one}=" for one in _begun(name, known)]
    return [f"{name}={one}" for one in _begun(value, known.get(name, ()))]


def _knobs() -> dict[str, tuple[str, ...]]:
    """Return the values of each knob of any backend: all that it may have, or those that are searched."""
    from lbmtune.catalogue.config import FAMILIES, backend_knobs

    found: dict[str, dict[str, None]] = {}
    for backend in FAMILIES:
        for name, knob in backend_knobs(backend).items():
            found.setdefault(name, {}).update(dict.fromkeys(map(str, knob.allowed or knob.search)))
    return {name: tuple(values) for name, values in found.items()}


@contextmanager
def of_whole_words() -> Iterator[None]:
    """Complete words as they were typed, although Bash parts them at each '=' and puts in what follows it alone."""
    given = {name: os.environ.get(name, "") for name in (_WORDS, _PLACE)}
    if os.environ.get("_LBMTUNE_COMPLETE") != "complete_bash" or "=" not in given[_WORDS]:
        yield
        return
    words, place = _joined(given[_WORDS].split(" "), int(given[_PLACE]))
    os.environ.update({_WORDS: " ".join(words), _PLACE: str(place)})
    cut = words[place].rfind("=") + 1
    try:
        with redirect_stdout(StringIO()) as printed:
            yield
    finally:
        os.environ.update(given)
        print("\n".join(line[cut:] for line in printed.getvalue().splitlines()))


def _joined(parts: Sequence[str], cursor: int) -> tuple[list[str], int]:
    """Return words whose parts Bash has at each '=', and the place of the one that holds the part at the cursor."""
    words: list[str] = []
    place = 0
    for number, part in enumerate(parts):
        if words and (part == "=" or words[-1].endswith("=")):
            words[-1] += part
        else:
            words.append(part)
        place = len(words) - 1 if number == cursor else place
    return words, place
