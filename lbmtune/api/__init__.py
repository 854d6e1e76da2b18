"""The Python interface: what the command line calls, and what a notebook can call.

    predict, render, verify, measure, accuracy, profile    one configuration of one case
    rank, vary                                             the space of a study, by the model
    study, Study                                           a search on a device, and what it found
    reproduce                                              published experiments on a device
    load                                                   a kernel from best.json, ready to step

Remarks and progress go to the logger `lbmtune`, as warnings and as information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbmtune.lazy import lazy

if TYPE_CHECKING:
    from lbmtune.api.estimates import case_summary, costs, predictor
    from lbmtune.api.inventory import listing
    from lbmtune.api.kernels import accuracy, measure, predict, prove, render, verify
    from lbmtune.api.measured_machines import machine_file, measured_machine
    from lbmtune.api.profiling import profile, profile_page, profiler_target
    from lbmtune.api.ranking import rank, ranked_before
    from lbmtune.api.reproduction import claims_page, reproduce
    from lbmtune.api.studies import Study, study
    from lbmtune.api.variation import check_knob, vary
    from lbmtune.backend.cuda.compiled_cache import compiled_before
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.files.claimsfile import load_documents
    from lbmtune.model.gpu.families import estimated
    from lbmtune.model.tuning_hints import worth_varying
    from lbmtune.report.varied import write_varied
    from lbmtune.runtime.load import load
    from lbmtune.search.optuna_storage import without_password
    from lbmtune.search.study import nothing_valid

_MODULES = {
    "Case": "lbmtune.catalogue.problem.case",
    "Study": "lbmtune.api.studies",
    "accuracy": "lbmtune.api.kernels",
    "case_summary": "lbmtune.api.estimates",
    "check_knob": "lbmtune.api.variation",
    "claims_page": "lbmtune.api.reproduction",
    "compiled_before": "lbmtune.backend.cuda.compiled_cache",
    "costs": "lbmtune.api.estimates",
    "estimated": "lbmtune.model.gpu.families",
    "listing": "lbmtune.api.inventory",
    "load": "lbmtune.runtime.load",
    "load_documents": "lbmtune.files.claimsfile",
    "machine_file": "lbmtune.api.measured_machines",
    "measure": "lbmtune.api.kernels",
    "measured_machine": "lbmtune.api.measured_machines",
    "nothing_valid": "lbmtune.search.study",
    "predict": "lbmtune.api.kernels",
    "predictor": "lbmtune.api.estimates",
    "profile": "lbmtune.api.profiling",
    "profile_page": "lbmtune.api.profiling",
    "profiler_target": "lbmtune.api.profiling",
    "prove": "lbmtune.api.kernels",
    "rank": "lbmtune.api.ranking",
    "ranked_before": "lbmtune.api.ranking",
    "render": "lbmtune.api.kernels",
    "reproduce": "lbmtune.api.reproduction",
    "study": "lbmtune.api.studies",
    "vary": "lbmtune.api.variation",
    "verify": "lbmtune.api.kernels",
    "without_password": "lbmtune.search.optuna_storage",
    "worth_varying": "lbmtune.model.tuning_hints",
    "write_varied": "lbmtune.report.varied",
}
__all__ = [
    "Case",
    "Study",
    "accuracy",
    "case_summary",
    "check_knob",
    "claims_page",
    "compiled_before",
    "costs",
    "estimated",
    "listing",
    "load",
    "load_documents",
    "machine_file",
    "measure",
    "measured_machine",
    "nothing_valid",
    "predict",
    "predictor",
    "profile",
    "profile_page",
    "profiler_target",
    "prove",
    "rank",
    "ranked_before",
    "render",
    "reproduce",
    "study",
    "vary",
    "verify",
    "without_password",
    "worth_varying",
    "write_varied",
]

__getattr__, __dir__ = lazy(__name__, _MODULES)
