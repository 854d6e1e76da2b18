"""A Program on a device: fields, initialise, step, macroscopics."""

from lbmtune.runtime.simulation import Simulation

__all__ = ["Simulation"]
