"""Rules of users' kernels: the constraints of their description, whole numbers in formulas, and memory."""

from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.own_kernel.config import OwnConfig
from lbmtune.catalogue.own_kernel.formulas import FormulaError, evaluated
from lbmtune.catalogue.problem.case import Case
from lbmtune.units import format_bytes


def constraints(case: Case, config: OwnConfig, limits: Limits) -> str | None:
    """Require what the description requires of the values of knobs."""
    scope = config.kernel.scope(config.values, case.domain)
    for formula in config.kernel.constraints:
        try:
            holds = evaluated(formula, scope)
        except FormulaError as error:
            return f"the constraint {formula!r} {error}"
        if not holds:
            read = ", ".join(f"{name}={value}" for name, value in scope.items() if name in formula)
            return f"the constraint {formula!r} of {config.kernel.name} does not hold ({read})"
    return None


def formulas(case: Case, config: OwnConfig, limits: Limits) -> str | None:
    """Require formulas that have a value, on the domain of the case and on that of the check."""
    for domain in (case.domain, config.awkward_domain(case)):
        scope = config.kernel.scope(config.values, domain)
        for key, formula in config.kernel.formulas():
            try:
                evaluated(formula or "0", scope)
            except FormulaError as error:
                return f"{key}: {formula!r} {error}"
        for what, of in (("the size of a buffer", config.kernel.sizes), ("an argument", config.kernel.numbers)):
            try:
                of(config.values, domain)
            except FormulaError as error:
                return f"{what} {error}"
    return None


def sizes(case: Case, config: OwnConfig, limits: Limits) -> str | None:
    """Require buffers like those of the defaults, if results are compared with theirs."""
    kernel, domain = config.kernel, config.awkward_domain(case)
    if kernel.reference.entry:
        return None
    usual, own = kernel.sizes(kernel.defaults, domain), kernel.sizes(config.values, domain)
    for name, size in own.items():
        if size != usual[name]:
            return (
                f"buffer {name} has {size} elements, and {usual[name]} with the defaults of all knobs, whose results "
                "are the reference; describe another one in [reference]"
            )
    return None


def memory(case: Case, config: OwnConfig, limits: Limits) -> str | None:
    """Require buffers that fit into the memory of the device."""
    needed = config.scratch_bytes(case)
    if needed <= limits.memory_bytes:
        return None
    allows = "the study allows" if limits.memory_asked else "the device has"
    return f"the buffers need {format_bytes(needed)}; {allows} {format_bytes(limits.memory_bytes)}"


OWN_RULES = (constraints, formulas, sizes, memory)
