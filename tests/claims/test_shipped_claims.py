"""Shipped claims leave out variants with a reason, and forget no kernel that is legal on a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import KernelConfig, backend_knobs
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.plan import Here, configuration
from lbmtune.claims.tally import can_be_asked
from lbmtune.errors import InputError
from lbmtune.files.claimsfile import load_documents
from lbmtune.records.claims import Claim, Document, SideTask, Variant
from tests.support.studies.fake_study import LIMITS

OTHER = {"cuda": "cpu", "cpu": "cuda"}
HERE = {
    backend: Here(backend=backend, limits=replace(LIMITS, cores=4), physical_cores=2, budget_bytes=1 << 30)
    for backend in OTHER
}
SHAPES = {"cuda": ("block=128x1x1", "block=32x4x1"), "cpu": ("", "vector_bits=0")}
"""How a backend divides a kernel, which says nothing about its algorithm."""
OF_SHAPE = {"block", "vector_bits", "row_offset", "parallel_loop", "width"}
DOCUMENTS = {document.name: document for document in load_documents(())}
CLAIMS = [(document.name, claim.name) for document in DOCUMENTS.values() for claim in document.claims]
Kind = tuple[frozenset[tuple[str, object]], str]

LEGAL_AND_YET_NOT_ASKED = {
    ("cuda", "robertsen2018.aosoa-width"),  # printed for processors
    ("cuda", "robertsen2018.push-as-pull"),
    ("cpu", "geier2017.alignment"),  # an effect of what a GPU does, or has
    ("cpu", "oliveira2019.cache-resident"),
    ("cpu", "robertsen2018.counters"),
    ("cpu", "robertsen2018.small-domains"),
    ("cpu", "robertsen2018.smallest-domains"),
    ("cpu", "robertsen2018.small-domains-direct"),
    ("cpu", "robertsen2018.smallest-domains-direct"),
    ("cpu", "tran2017.equal-transactions"),
    ("cpu", "tran2017.fewer-store-transactions"),
    ("cpu", "valero2017.constant-beyond-aa"),
    ("cpu", "valero2017.constant-beyond-ghost"),
    ("cpu", "valero2017.constant-beyond-swap"),
    ("cpu", "valero2017.past-capacity-collapse"),
    ("cpu", "valero2017.past-capacity-ghost"),
    ("cpu", "valero2017.past-capacity-swap"),
    ("cpu", "oliveira2019.storing"),  # a pass of its own is another question
    ("cpu", "tran2017.everything"),  # all measures together, and registers are one of them
    ("cpu", "valero2017.refresh"),  # a loop refreshes as it goes
}
"""Claims with a reason against them although rules allow their kernels; a new one is to be thought about."""


def claim_of(document: Document, name: str) -> Claim:
    return next(claim for claim in document.claims if claim.name == name)


def variants_of(document: Document, side: tuple[str, ...]) -> Iterator[tuple[Variant, Case]]:
    """The variants of a side of a claim, each with a case of its experiment."""
    variants = {variant.name: variant for variant in document.variants}
    series = {one.name: one for one in document.series}
    for name in side:
        variant, _, experiment = name.partition("@")
        of = series[experiment or variants[variant].series[0]]
        yield variants[variant], next(iter(of.cases.values()))[-1]


def allowed(text: str, backend: str, case: Case) -> KernelConfig | None:
    try:
        config = configuration(text, HERE[backend], case.domain)
    except InputError:
        return None
    return None if broken(case, config, HERE[backend].limits) else config


def kind(config: KernelConfig, duty: SideTask | None) -> Kind:
    knobs = frozenset((name, value) for name, value in config.flat().items() if name not in OF_SHAPE)
    return knobs, duty.kind if duty else ""


def counterparts(variant: Variant, backend: str, case: Case) -> set[Kind]:
    """The kinds of legal kernels that do on a backend what a variant does on the other one.

    A variant with knobs that only the other one has is left out.
    """
    items = [item for item in variant.configs.get(OTHER[backend], "").split(",") if item]
    kept = [item for item in items if item.partition("=")[0] not in OF_SHAPE - {"width"}]
    if not kept or not {item.partition("=")[0] for item in kept} <= backend_knobs(backend).keys() | {"family"}:
        return set()
    found = (allowed(",".join(filter(None, (*kept, shape))), backend, case) for shape in SHAPES[backend])
    return {kind(config, variant.duty) for config in found if config}


def here(variant: Variant, backend: str, case: Case) -> set[Kind]:
    """The kind of kernel that a variant has on a backend, if it has one that is legal."""
    text = variant.configs.get(backend)
    config = allowed(text, backend, case) if text else None
    return {kind(config, variant.duty)} if config else set()


def forgotten(document: Document, claim: Claim, backend: str) -> list[str]:
    """The variants of a claim without a line for a backend, on which they would be legal.

    If another of the same side has such a kernel, in another shape, the side is complete.
    """
    found = []
    for side in (claim.of, claim.over):
        named = list(variants_of(document, side))
        there = {one for variant, case in named for one in here(variant, backend, case)}
        for variant, case in named:
            missing = set() if backend in variant.configs else counterparts(variant, backend, case)
            found += [variant.name] if missing and not missing & there else []
    return found


def could_be_asked(document: Document, claim: Claim, backend: str) -> bool:
    """Whether each side has a legal kernel of a backend, and what is compared differs, in kernel or case."""
    sides = [
        {
            (one, case)
            for variant, case in variants_of(document, side)
            for one in here(variant, backend, case) or counterparts(variant, backend, case)
        }
        for side in (claim.of, claim.over)
        if side
    ]
    if len(sides) == 2:
        return all(sides) and sides[0] != sides[1]
    return bool(sides) and len(sides[0]) > (claim.kind == "spread")


@pytest.mark.parametrize(("document", "name"), CLAIMS)
@pytest.mark.parametrize("backend", OTHER)
def test_a_claim_that_cannot_be_asked_of_a_device_says_why(document: str, name: str, backend: str) -> None:
    claim = claim_of(DOCUMENTS[document], name)
    assert can_be_asked(DOCUMENTS[document], claim, backend) or claim.untestable.get(backend)


@pytest.mark.parametrize(("document", "name"), CLAIMS)
@pytest.mark.parametrize("backend", OTHER)
def test_no_variant_that_is_legal_on_a_device_is_forgotten(document: str, name: str, backend: str) -> None:
    claim = claim_of(DOCUMENTS[document], name)
    if backend not in claim.untestable:
        assert not forgotten(DOCUMENTS[document], claim, backend)


@pytest.mark.parametrize(
    ("variant", "of", "backend"),
    [
        ("aa-indirect-collision", "stream-over-collision", "cpu"),
        ("aa-indirect-bundle", "bundle", "cpu"),
        ("aa-indirect-bundle-aosoa", "vectorised-bundle", "cpu"),
        ("two-step", "two-lattice-over-two-step", "cuda"),
    ],
)
def test_a_variant_without_its_line_is_found(variant: str, of: str, backend: str) -> None:
    whole = DOCUMENTS["robertsen2018"]
    without = {OTHER[backend]: next(one for one in whole.variants if one.name == variant).configs[OTHER[backend]]}
    variants = tuple(replace(one, configs=without) if one.name == variant else one for one in whole.variants)
    damaged = replace(whole, variants=variants)
    assert forgotten(damaged, claim_of(damaged, of), backend) == [variant]


def test_reasons_against_claims_whose_kernels_are_legal_are_few_and_known() -> None:
    found = {
        (backend, f"{document.name}.{claim.name}")
        for document in DOCUMENTS.values()
        for claim in document.claims
        for backend in claim.untestable
        if could_be_asked(document, claim, backend)
    }
    assert found == LEGAL_AND_YET_NOT_ASKED


def test_a_reason_that_says_not_supported_is_that_of_the_rules() -> None:
    said = 0
    for document in DOCUMENTS.values():
        for claim in document.claims:
            for backend, reason in claim.untestable.items():
                if " is not supported " not in reason:
                    continue
                said += 1
                rules = set()
                for variant, case in variants_of(document, (*claim.of, *claim.over)):
                    text = variant.configs.get(OTHER[backend], "")
                    if backend not in variant.configs and text:
                        config = configuration(f"{text},{SHAPES[backend][0]}", HERE[backend], case.domain)
                        rules.add(broken(case, config, HERE[backend].limits))
                assert rules == {reason}
    assert said, "swap in order, on CUDA"
