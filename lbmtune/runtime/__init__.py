"""A program on a device: fields, initialisation, time steps, macroscopic values."""

from lbmtune.runtime.simulation import Simulation

__all__ = ["Simulation"]
