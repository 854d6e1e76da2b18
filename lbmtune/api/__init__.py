"""The Python interface: what the command line calls, and what a notebook can call.

    predict, render, verify, measure, accuracy, profile    one configuration of one case
    rank, vary                                             the space of a study, by the model
    plan                                                   the largest domain in a memory, and the devices needed
    prove_parts, race_parts                                one kernel on several devices: against one, and beside it
    scaling                                                weak and strong scaling over the devices of a host
    decompose, cuts                                        parts of a domain for several devices, and their faces
    study, Study, trials                                   a search on a device, and what it found
    compare                                                studies of other days, devices or tool chains
    portfolio                                                 few kernels for many domains, with the rule between them
    work                                                   a worker of a study that several processes share
    reproduce                                              published experiments on a device
    remeasure                                              whether the speed of a best.json holds here
    load                                                   a kernel from best.json, ready to step
    select                                                 the kernel of several files for a case on a device

Remarks and progress go to the logger `lbmtune`, as warnings and as information.
"""

from typing import TYPE_CHECKING

from lbmtune.lazy import lazy

if TYPE_CHECKING:
    from lbmtune.api.exporting import export_best
    from lbmtune.api.inventory import entries, listing
    from lbmtune.api.kernels import accuracy, measure, predict, prove, render, verify
    from lbmtune.api.machines.doctor import examined
    from lbmtune.api.machines.measured_machines import machine_file, measured_machine
    from lbmtune.api.portfolios.exported import export_portfolio, report_portfolio
    from lbmtune.api.portfolios.interface import portfolio, unseen
    from lbmtune.api.predicted.decompositions import cuts, decompose
    from lbmtune.api.predicted.estimates import case_summary, costs, predictor
    from lbmtune.api.predicted.parallel import check_links, first_on_parts, scaling
    from lbmtune.api.predicted.planning import plan
    from lbmtune.api.predicted.ranking import rank, ranked_before
    from lbmtune.api.predicted.variation import check_knob, vary
    from lbmtune.api.profiling import profile, profiler_target
    from lbmtune.api.remeasuring import remeasure
    from lbmtune.api.reproduction import reproduce
    from lbmtune.api.several_devices.links import linked, measured_links
    from lbmtune.api.several_devices.parts import prove_parts, race_parts
    from lbmtune.api.studies.comparing import compare, write_comparison_page
    from lbmtune.api.studies.following import follow
    from lbmtune.api.studies.foresight import foreseen
    from lbmtune.api.studies.results import Study, trials
    from lbmtune.api.studies.run import study
    from lbmtune.api.studies.workers import work
    from lbmtune.backend.cuda.compiled_cache import compiled_before
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.files.claimsfile import load_documents
    from lbmtune.model.gpu.families import estimated
    from lbmtune.model.tuning_hints import worth_varying
    from lbmtune.report.claims import write_claims_page
    from lbmtune.report.profile import write_profile_page
    from lbmtune.report.scaling import write_scaling
    from lbmtune.report.varied import write_varied
    from lbmtune.runtime.load import load
    from lbmtune.runtime.select import select
    from lbmtune.search.optuna_view.storage import without_password
    from lbmtune.search.study import nothing_valid

_NAMES = {
    "lbmtune.api.studies.comparing": ("compare", "write_comparison_page"),
    "lbmtune.api.predicted.decompositions": ("cuts", "decompose"),
    "lbmtune.api.predicted.estimates": ("case_summary", "costs", "predictor"),
    "lbmtune.api.machines.doctor": ("examined",),
    "lbmtune.api.exporting": ("export_best",),
    "lbmtune.api.studies.following": ("follow",),
    "lbmtune.api.studies.foresight": ("foreseen",),
    "lbmtune.api.inventory": ("entries", "listing"),
    "lbmtune.api.portfolios.exported": ("export_portfolio", "report_portfolio"),
    "lbmtune.api.portfolios.interface": ("portfolio", "unseen"),
    "lbmtune.api.kernels": ("accuracy", "measure", "predict", "prove", "render", "verify"),
    "lbmtune.api.several_devices.links": ("linked", "measured_links"),
    "lbmtune.api.machines.measured_machines": ("machine_file", "measured_machine"),
    "lbmtune.api.predicted.planning": ("plan",),
    "lbmtune.api.profiling": ("profile", "profiler_target"),
    "lbmtune.api.predicted.ranking": ("rank", "ranked_before"),
    "lbmtune.api.remeasuring": ("remeasure",),
    "lbmtune.api.reproduction": ("reproduce",),
    "lbmtune.api.predicted.parallel": ("check_links", "first_on_parts", "scaling"),
    "lbmtune.api.studies.results": ("Study", "trials"),
    "lbmtune.api.several_devices.parts": ("prove_parts", "race_parts"),
    "lbmtune.api.studies.run": ("study",),
    "lbmtune.api.predicted.variation": ("check_knob", "vary"),
    "lbmtune.api.studies.workers": ("work",),
    "lbmtune.backend.cuda.compiled_cache": ("compiled_before",),
    "lbmtune.catalogue.problem.case": ("Case",),
    "lbmtune.files.claimsfile": ("load_documents",),
    "lbmtune.model.gpu.families": ("estimated",),
    "lbmtune.model.tuning_hints": ("worth_varying",),
    "lbmtune.report.claims": ("write_claims_page",),
    "lbmtune.report.profile": ("write_profile_page",),
    "lbmtune.report.scaling": ("write_scaling",),
    "lbmtune.report.varied": ("write_varied",),
    "lbmtune.runtime.load": ("load",),
    "lbmtune.runtime.select": ("select",),
    "lbmtune.search.optuna_view.storage": ("without_password",),
    "lbmtune.search.study": ("nothing_valid",),
}
__all__ = [
    "Case",
    "Study",
    "accuracy",
    "compare",
    "load",
    "measure",
    "plan",
    "predict",
    "profile",
    "prove",
    "rank",
    "remeasure",
    "render",
]
__all__ += [
    "cuts",
    "decompose",
    "portfolio",
    "prove_parts",
    "race_parts",
    "reproduce",
    "scaling",
    "select",
    "study",
    "trials",
    "unseen",
    "vary",
    "verify",
    "work",
]
# of the command line
__all__ += [
    "case_summary",
    "check_knob",
    "check_links",
    "compiled_before",
    "costs",
    "entries",
    "estimated",
    "examined",
    "export_best",
    "export_portfolio",
    "first_on_parts",
    "follow",
    "foreseen",
    "linked",
    "listing",
    "load_documents",
    "report_portfolio",
]
__all__ += ["measured_links"]
__all__ += ["machine_file", "measured_machine", "nothing_valid", "predictor", "profiler_target", "ranked_before"]
__all__ += [
    "without_password",
    "worth_varying",
    "write_claims_page",
    "write_comparison_page",
    "write_profile_page",
    "write_scaling",
    "write_varied",
]

__getattr__, __dir__ = lazy(__name__, _NAMES)
