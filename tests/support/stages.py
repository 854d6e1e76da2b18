"""In which stage of a study a kernel fails."""

from lbmtune.catalogue.config import KernelConfig
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome, Trial


def judged(evaluator: Evaluator, doubtful: KernelConfig, right: KernelConfig, seconds: float) -> tuple[str, Trial]:
    """Return the stage in which a kernel fails beside a right one, and its trial there; '' if it passes them all.

    seconds: of the run without a pause.
    """
    evaluator.submit(0, doubtful)
    first = evaluator.next()
    if first.outcome is not Outcome.OK:
        return "first", first
    final, beside = evaluator.finals([doubtful, right])
    assert beside.outcome is Outcome.OK, beside.reason
    assert beside.final, beside.reason
    if final.outcome is not Outcome.OK:
        return "final", final
    (run,) = evaluator.sustained([doubtful], [True], seconds)
    return "" if run.outcome is Outcome.OK else "sustained", run
