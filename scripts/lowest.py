"""Test with the least versions of all dependencies that pyproject.toml allows.

    python -m scripts.lowest build/lowest        an environment there, and the tests of what dependencies read and say

Arguments after the folder go to pytest.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.paths import ROOT

TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")
TESTS = ("records", "files", "export", "cli/test_bad_input.py", "cli/format/test_streams.py", "search/test_resume.py")
"""Of records, files and command lines, which end in exceptions of dependencies if these are too old."""


def least_versions() -> list[str]:
    """Return the dependencies of lbmtune, each in its least version."""
    return pinned(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def pinned(requirements: Iterable[str]) -> list[str]:
    """Return requirements such as numpy>=2.0 as numpy==2.0. Raises ValueError for one without a least version."""
    pairs = [one.split(">=") for one in requirements]
    return [f"{name}=={version}" for name, version in pairs]


def main(arguments: Sequence[str]) -> int:
    """Install the least versions and run the tests with them; return the exit code of pytest."""
    folder, *more = arguments
    python = Path(folder).absolute() / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *least_versions(), *TOOLS], check=True)
    call = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{one}" for one in TESTS), *more]
    return subprocess.run(call, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
