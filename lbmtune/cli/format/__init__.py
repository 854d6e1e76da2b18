"""Output of the verbs. Names whose modules load slowly are imported on first use."""

from typing import TYPE_CHECKING

from lbmtune.lazy import lazy

if TYPE_CHECKING:
    from lbmtune.cli.format.claims import ClaimsProgress, variant_table, verdict_table
    from lbmtune.cli.format.profile import print_profile
    from lbmtune.cli.format.studies.live import LiveProgress
    from lbmtune.cli.format.studies.progress import Progress

__all__ = ["ClaimsProgress", "LiveProgress", "Progress", "print_profile", "variant_table", "verdict_table"]

_MODULES = {
    "claims": ("ClaimsProgress", "variant_table", "verdict_table"),
    "profile": ("print_profile",),
    "studies.live": ("LiveProgress",),
    "studies.progress": ("Progress",),
}
__getattr__, __dir__ = lazy(__name__, {f"{__name__}.{module}": names for module, names in _MODULES.items()})
