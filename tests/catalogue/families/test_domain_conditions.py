"""A best.json says of domains what the rules refuse, of every family, on every domain."""

import random
from dataclasses import replace
from functools import cache

import msgspec
import pytest

from lbmtune.catalogue.config import FAMILIES
from lbmtune.catalogue.families.rules import broken, domain_conditions
from lbmtune.catalogue.record import Cells, KernelConfig
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.describe_domain import domain_rules
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.records.best_json.domain import DomainLimit, DomainRules, evaluated
from scripts.random_domains import LIMITS, chosen, domains, refusal, refused_by
from tests.support.conformance.choices import Sample

pytestmark = pytest.mark.landing  # tests share a list that takes long

KERNELS, DOMAINS = 24, 40
"""Of a family, and of a kernel."""
LARGE = (4096, 65_535, 65_536, 131_070, 131_071, 524_281, 2**24, 2**30, 2**31 - 1, 2**31)
RECORDS = [record for families in FAMILIES.values() for record in families.values()]
by_family = pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.backend}-{record.family}")


@cache
def samples(record: type[KernelConfig]) -> list[Sample]:
    return [sample for sample in chosen((record.backend,), 1) if type(sample[1]) is record][:KERNELS]


def drawn(sample: Sample, seed: int) -> list[Cells]:
    """Small domains, and of cases whose cells need no counting large ones."""
    case, config = sample
    draw = random.Random(f"{seed} {config.key}")
    source = domains(case, config, draw)
    found = [next(source) for _ in range(DOMAINS)]
    if not case.geometry and not case.patches:
        for _ in range(DOMAINS // 2):
            extents = list(draw.choice(found))
            extents[draw.randrange(case.stencil.dimensions)] = draw.choice(LARGE)
            found.append((extents[0], extents[1], extents[2]))
    return found


def as_read(rules: DomainRules) -> DomainRules:
    """Rules as they come out of a file."""
    return msgspec.json.decode(msgspec.json.encode(rules), type=DomainRules)


@by_family
def test_the_file_admits_the_domains_that_the_rules_admit(record: type[KernelConfig]) -> None:
    """And those alone, but for domains whose elements the indices of its text do not reach."""
    seen = set[bool]()
    for sample in samples(record):
        case, config = sample
        program = render(case, config)
        rules = as_read(domain_rules(program, LIMITS))
        assert refused_by(rules, sample, case.domain) is None
        for domain in drawn(sample, 1):
            reason, said = refusal(sample, domain), refused_by(rules, sample, domain)
            most = program.max_elements
            fits = reason is None and (most is None or program.buffer_elements(domain) <= most)
            assert (said is None) == fits, (config.brief, domain, reason, said)
            seen.add(reason is None)
    assert seen == {True, False} or record.indirect


@by_family
def test_conditions_do_not_depend_on_the_domain(record: type[KernelConfig]) -> None:
    """Nor does the text, on domains that they admit: a file holds both, and is for all of these domains."""
    for sample in samples(record):
        case, config = sample
        program = render(case, config)
        fitting = [domain for domain in drawn(sample, 2)[:DOMAINS] if refusal(sample, domain) is None]
        for domain in fitting[:2]:
            there = render(replace(case, domain=domain), config)
            assert code_of(program.target, there.source) == code_of(program.target, program.source)
            assert there.options == program.options
            assert domain_rules(there, LIMITS) == domain_rules(program, LIMITS)


@by_family
def test_steps_that_are_left_over_have_the_domains_of_the_others(record: type[KernelConfig]) -> None:
    for sample in samples(record):
        case, config = sample
        for domain in drawn(sample, 3)[:DOMAINS]:
            if refusal(sample, domain) is None:
                against = broken(replace(case, domain=domain), config.single_step(), LIMITS)
                assert against is None or against.startswith("steps=1 is not supported"), "as no study would take it"


@by_family
def test_every_condition_has_a_reason_and_a_sentence(record: type[KernelConfig]) -> None:
    for case, config in samples(record):
        for one in domain_conditions(case, config, LIMITS):
            assert one.because
            assert one.said.format(value=7)


@pytest.mark.parametrize(
    ("formula", "value"),
    [("nx", 5), ("(NX + 15) / 16 * 16", 16), ("nx * ny - 2", 13), ("7 % nx", 2), ("NX / ny", 2)],
)
def test_formulas_in_c(formula: str, value: int) -> None:
    assert evaluated(formula, {"nx": 5, "ny": 3, "NX": 7}) == value


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "nq",
        "nx ** nx",
        "nx.real",
        "__import__('os')",
        "nx / 0",
        "1.5",
        "nx if 1 else 2",
        "(" * 9000,
        "-nx",
        "True",
    ],
)
def test_what_is_no_formula_is_refused_and_not_run(formula: str) -> None:
    with pytest.raises(InputError, match="is no formula of nx"):
        evaluated(formula, {"nx": 5, "ny": 3})


def test_a_limit_says_which_number_is_wrong() -> None:
    limit = DomainLimit(value="nx * ny", because="for example", multiple=4, least=8, most=100)
    said = [limit.refusal({"nx": nx, "ny": 2}) for nx in (2, 4, 5, 60)]
    assert said == [
        "nx * ny=4 is less than 8 (for example)",
        None,
        "nx * ny=10 is not a multiple of 4 (for example)",
        "nx * ny=120 is more than 100 (for example)",
    ]
    each = replace(limit, per_multiprocessor=True)
    assert each.refusal({"nx": 60, "ny": 2}, 2) is None
