"""Take the picture of a report that README shows: its first screen in a headless Chromium.

python -m scripts.docs.screen [PAGE] [--out docs/pictures/report.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.paths import ROOT
from tests.support.driven import browser

PAGE = ROOT / "reports" / "nvidia-h200" / "d3q19-box-fast-fp32.html"
PICTURE = ROOT / "docs" / "pictures" / "report.png"


def main() -> None:
    """Write the picture, 1280 x 900 pixels in light colours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", type=Path, default=PAGE)
    parser.add_argument("--out", type=Path, default=PICTURE)
    given = parser.parse_args()
    screen = browser()
    screen.open(given.page.resolve())
    screen.picture(given.out)


if __name__ == "__main__":
    main()
