"""The version of the installed package, which git tags tell when it is built or installed."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def of_checkout(project: Path) -> str:
    """Return the last release by the project file of a checkout that nobody installed, or 0, as not known exactly."""
    settings = tomllib.loads(project.read_text()) if project.is_file() else {}
    release = settings.get("tool", {}).get("versioningit", {}).get("default-version", "0")
    return f"{release}+unknown"


try:
    __version__ = version("lbmtune")
except PackageNotFoundError:
    __version__ = of_checkout(Path(__file__).parents[1] / "pyproject.toml")
