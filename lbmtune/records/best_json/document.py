"""best.json: the best kernel of a study with all that a solver needs to run it, and its expected speed.

`Best` is the format, with the types of `kernel_format`. `best.schema.json` is the JSON Schema made
from it (`schema`), shipped beside this file. Quantities are in SI base units except MLUPS; lattice quantities are in
lattice units.
"""

import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import InputError
from lbmtune.records import Accuracy, Conditions, Environment, Prediction, Resources, Sustained, Verification
from lbmtune.records.best_json.kernel import Kernel, Storage, source_digest
from lbmtune.records.best_json.portfolio import Portfolio
from lbmtune.records.header import Ceiling
from lbmtune.records.legacy.configurations import config_of, is_legacy, previous_key
from lbmtune.records.quantities import Count, NotNegative, Positive
from lbmtune.records.store import decoded
from lbmtune.regular_file import regular_bytes

FORMAT, BEST_VERSION = "lbmtune.best", 3
_READ_VERSIONS = (1, 2, BEST_VERSION)
"""Version 1 says nothing of domains, version 2 has no laws of portfolios; all that they say is as in version 3."""
SCHEMA = Path(__file__).with_name("best.schema.json")
SCHEMA_ID = f"urn:{FORMAT.replace('.', ':')}:{BEST_VERSION}"
"""Name of the schema, in it and in the files."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Measured speed of the kernel. ci_low_mlups, ci_high_mlups: 95 % interval of the median, within the run.

    repeat_low_mlups, repeat_high_mlups: interval that holds 90 % of repeats in other runs, of which between_runs is the
    part that the run does not know, a logarithm of a ratio; None if it was not measured.
    mlups and its interval are of a burst: samples of a fraction of a second, which a power limit hardly affects.
    sustained: of a run of seconds without a pause, if made.
    share_of_ceiling: bandwidth over the ceiling of the study (`Ceiling.best_bytes_per_s`).
    doubts: why the speed, or the rank of the kernel, is not reliable, in sentences; none in files that do not say it.
    """

    mlups: Positive
    ci_low_mlups: NotNegative
    ci_high_mlups: NotNegative
    bandwidth_bytes_per_s: Positive
    bytes_per_update: Positive
    footprint_bytes: Count
    share_of_ceiling: NotNegative
    samples: Count
    conditions: Conditions
    disturbed: bool
    sustained: Sustained | None = None
    between_runs: NotNegative | None = None
    repeat_low_mlups: NotNegative | None = None
    repeat_high_mlups: NotNegative | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Alternate:
    """A configuration of a lower rank, verified on small domains.

    proven: whether it was verified on the whole domain, too (false in files that do not say it).
    """

    rank: Count
    key: str
    configuration: dict[str, Scalar]
    mlups: Positive
    ci_low_mlups: NotNegative
    ci_high_mlups: NotNegative
    proven: bool = False


@dataclass(frozen=True, kw_only=True)
class SentLink:
    """A population that crosses a face between two parts, after a step.

    f_`direction` of a cell x of one part whose neighbour x + c belongs to another one, unless a wall cuts that link:
    the step has written it in `slot` at x + `offset`, and the next step of the other part reads it at the same cell of
    the domain. Both parts have storage for that cell, one of them in its halo.
    """

    direction: int
    slot: int
    offset: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class OnParts:
    """Cut, exchange and overlap with which the kernel was fastest on several devices.

    cut: as text; along: parts along each axis, null if a bisection by fluid cells made them; first_cell: in C, of the
    first cell along x, y and z of part number p of P along that axis, which ends where part p + 1 begins.
    halo_layers: beside each cut and through periodic faces; none along an axis that is not cut, and none at walls.
    steps_between_exchanges: time steps of all launches between two exchanges.
    crosses: 'links', populations (`sent`), or 'cells', all values of the cells of the halo; sent[p]: after a step that
    began at parity p.
    coupling: knobs of the exchange and of the overlap; edge_least, edge_most: limits of the planes of an
    edge, which is launched before or beside the other ones of its part: a quarter of the part's within these limits.
    takes_planes: whether each launch updates some planes of a part; otherwise the halo is computed, too.
    domain: of all parts; weak: each device had the domain of the case. mlups: of all devices; alone_mlups: of one, in
    turns; efficiency, with its 95 % interval; period_s, launches_s, exchange_s: from one exchange to the next, and its
    parts alone; worst, bound: largest difference from one device, and that of rounding.
    """

    devices: Count
    cut: str
    along: tuple[int, int, int] | None
    first_cell: tuple[str, str, str] | None
    halo_layers: Count
    steps_between_exchanges: Count
    crosses: str
    sent: tuple[tuple[SentLink, ...], ...]
    coupling: Coupling
    edge_least: Count
    edge_most: Count
    takes_planes: bool
    domain: tuple[int, int, int]
    weak: bool
    mlups: Positive
    alone_mlups: Positive
    efficiency: Positive
    efficiency_low: NotNegative
    efficiency_high: NotNegative
    period_s: Positive
    launches_s: NotNegative
    exchange_s: NotNegative
    worst: NotNegative
    bound: NotNegative


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best kernel of a study. format and version: checked first.

    accuracy: L2 errors of a Taylor-Green vortex in the storage format and precision of the kernel, if measured.
    objective: several are separated by commas; member: place of the kernel in the Pareto set between them, from
    1 on, the best by the first objective first; 0 if there is no such set.
    limits: what the study allowed a kernel, such as power_w.
    proven: whether the kernel was verified on the whole domain; finished: whether the study came to its end, so that no
    other configuration may be faster. parts: of a study on several devices; null in others.
    portfolio: of a study of many domains: kernels for all of them, of which that of this file is the robust one, null
    in others. left_out: what of the study did not fit into its time or could not be measured, such as finals of other
    kernels.
    ceiling_doubt: why ceiling and prediction, or shares of them, are not reliable, in a sentence; '' if they are, or if
    the file does not say it.
    """

    study: str
    objective: str
    case: Case
    key: str
    configuration: dict[str, Scalar]
    kernel: Kernel
    storage: Storage
    expected: Expected
    ceiling: Ceiling
    environment: Environment
    verification: Verification | None
    resources: Resources | None
    prediction: Prediction | None
    alternates: tuple[Alternate, ...]
    date: str
    lbmtune: str
    accuracy: Accuracy | None = None
    limits: dict[str, NotNegative] = field(default_factory=dict)
    member: Count = 0
    proven: bool = True
    finished: bool = True
    ceiling_doubt: str = ""
    left_out: tuple[str, ...] = ()
    parts: OnParts | None = None
    portfolio: Portfolio | None = None
    format: str = FORMAT
    version: int = field(default=BEST_VERSION)

    @property
    def config(self) -> KernelConfig:
        """Return the configuration. Raises InputError."""
        return from_flat(self.configuration)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Return all kernels of the file, its own first."""
        return self.kernel, *(one.kernel for one in (self.portfolio.kernels if self.portfolio else ()))

    def of_portfolio(self, place: int, domain: tuple[int, int, int] | None = None, count: int | None = None) -> "Best":
        """Return what the file would be with a kernel of its portfolio alone.

        domain: on which it runs, with the planes of a chunk that follow from it; None: that of its record. count: of
        these chunks; None: by their rule.
        """
        if self.portfolio is None:
            return self
        one = self.portfolio.kernels[place]
        own: dict[str, Any] = {name: getattr(one, name) for name in vars(one).keys() & vars(self).keys()}
        speed: dict[str, Any] = {name: getattr(one, name) for name in vars(one).keys() & vars(self.expected).keys()}
        speed |= dict.fromkeys(("sustained", "between_runs", "repeat_low_mlups", "repeat_high_mlups"))
        case = replace(self.case, domain=one.domain)
        expected = replace(self.expected, **speed)
        found = replace(
            self, **own, case=case, expected=expected, resources=None, prediction=None, alternates=(), portfolio=None
        )
        chunks = one.kernel.chunks
        if chunks is None or domain is None:
            return found
        return found.in_chunks(-(-domain[2] // (count or chunks.count(domain))))

    def in_chunks(self, planes: int) -> "Best":
        """Return the same kernel with another length of the chunks of planes, which only launches depend on."""
        config: Any = self.config
        longer = replace(config, **{config.length_knob: planes})
        kernel = self.kernel.with_launches(lambda one: replace(one, covers=(*one.covers[:2], planes)))
        return replace(self, key=longer.key, configuration=longer.flat(), kernel=kernel)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of best.json, made from the types."""
    made: dict[str, Any] = msgspec.json.schema(Best)
    best = made["$defs"]["Best"]
    best["properties"]["format"]["const"] = FORMAT
    best["properties"]["version"]["const"] = BEST_VERSION
    best["properties"] = {"$schema": {"type": "string", "default": SCHEMA_ID}, **best["properties"]}
    best["required"] += ["format", "version"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"{FORMAT}, version {BEST_VERSION}",
        **made,
    }


def encode_best(best: Best) -> bytes:
    """Return the content of a best.json."""
    named = {"$schema": SCHEMA_ID, **msgspec.to_builtins(best)}
    return msgspec.json.format(msgspec.json.encode(named)) + b"\n"


def read_best(path: Path) -> Best:
    """Read and validate a best.json. Raises InputError if it is missing, damaged, of another version, or changed."""
    values = _values(path)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{path} is not a best.json: its format is not {FORMAT!r}; lbmtune export writes one.")
    if values.get("version") not in _READ_VERSIONS:
        raise InputError(
            f"{path} has version {values.get('version')!r} of {FORMAT}, this lbmtune reads versions "
            f"{_READ_VERSIONS[0]} to {BEST_VERSION}; export the study again with this lbmtune."
        )
    values |= {"version": BEST_VERSION}
    _check_schema(values, path)
    try:
        best = msgspec.convert(values, type=Best)
    except (ValueError, InputError) as error:
        raise InputError(f"{path} is damaged: {error}; export the study again.") from error
    _check_digests(best, path)
    for kernel in best.kernels:
        _check_arguments(kernel, path)
    return _current(best, path)


def _current(best: Best, path: Path) -> Best:
    """Return what this version or 0.1 wrote, with configurations and keys of today. Raises InputError."""
    old = is_legacy(best.configuration)
    try:
        config = config_of(best.configuration)
        key = previous_key(config) if old else config.key
        others = [(one, config_of(one.configuration)) for one in best.alternates if old]
        several = best.portfolio.kernels if best.portfolio else ()
        wrong = [one.key for one in several if from_flat(one.configuration).key != one.key]
    except InputError as error:
        raise InputError(f"{path} holds a configuration that this lbmtune does not know: {error}") from error
    if wrong:
        raise InputError(f"{path} is damaged: a kernel of its portfolio has not the key {wrong[0]}; export again.")
    if key != best.key:
        raise InputError(f"{path} is damaged: its configuration has the key {key}, not {best.key}; export again.")
    if not old:
        return best
    alternates = tuple(replace(one, key=found.key, configuration=found.flat()) for one, found in others)
    return replace(best, key=config.key, configuration=config.flat(), alternates=alternates)


def _values(path: Path) -> Any:
    try:
        return decoded(regular_bytes(path), object)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a best.json that lbmtune wrote.") from error
    except ValueError as error:
        if path.suffix == ".toml":
            raise InputError(
                f"{path} is a TOML file and no best.json (use --study {path} for a study file, --machine {path} for a "
                "machine description): neither is a configuration."
            ) from error
        raise InputError(f"{path} is damaged: it is not JSON ({error}); export the study again.") from error


def _check_schema(values: Any, path: Path) -> None:
    import jsonschema

    try:
        error = jsonschema.exceptions.best_match(_validator().iter_errors(values))
    except RecursionError:  # of a value that a message would show
        raise InputError(f"{path} is damaged: it is nested too deeply; export the study again.") from None
    if error:
        raise InputError(f"{path} is damaged at {error.json_path}: {error.message[:200]}; export the study again.")


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _check_digests(best: Best, path: Path) -> None:
    for kernel in (one for whole in best.kernels for one in (whole, whole.single)):
        if kernel and source_digest(kernel, best.kernel.target) != kernel.source_digest:
            raise InputError(
                f"{path} is damaged: the text of its kernel has not the digest that stands beside it "
                f"({kernel.source_digest[:12]}); export the study again."
            )


def _check_arguments(kernel: Kernel, path: Path) -> None:
    known = {*(buffer.name for buffer in kernel.buffers), *kernel.arguments, *kernel.slots}
    steps = (*kernel.period, *kernel.opening, kernel.single.launches if kernel.single else ())
    for name in (name for step in steps for launch in step for name in launch.arguments):
        if name not in known:
            raise InputError(f"{path} is damaged: its launches take {name!r}, which it does not hold; export again.")
