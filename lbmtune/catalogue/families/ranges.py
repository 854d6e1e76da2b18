"""Values of knobs that a study searches where its file does not name them: made for a case and a device, with a reason.

A family declares how the values of a knob follow from the case, the limits of the device and the knobs chosen before.
Knobs without a declaration have the values of their `search`.
"""

from collections.abc import Mapping

from lbmtune.catalogue.families import cpu, cuda
from lbmtune.catalogue.families.made import Made as Made
from lbmtune.catalogue.families.made import Range as Range
from lbmtune.catalogue.record import KernelConfig

_OWN: Mapping[type[KernelConfig], Mapping[str, Made]] = {**cuda.RANGES, **cpu.RANGES}


def made_knobs(record: type[KernelConfig]) -> Mapping[str, Made]:
    """Return how the values of the knobs of a family are made, by name."""
    return _OWN.get(record, {})
