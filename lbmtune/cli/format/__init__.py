"""What verbs print. Names whose modules load slowly are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbmtune.lazy import lazy

if TYPE_CHECKING:
    from lbmtune.cli.format.claims_progress import ClaimsProgress
    from lbmtune.cli.format.profile import print_profile
    from lbmtune.cli.format.progress import Progress

__all__ = ["ClaimsProgress", "Progress", "print_profile"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "ClaimsProgress": "lbmtune.cli.format.claims_progress",
        "Progress": "lbmtune.cli.format.progress",
        "print_profile": "lbmtune.cli.format.profile",
    },
)
