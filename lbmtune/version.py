"""The version of the installed package, which git tags tell when it is built or installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lbmtune")
except PackageNotFoundError:  # a checkout on the path, which nobody installed
    __version__ = "0+unknown"
