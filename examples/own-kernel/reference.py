"""One step of D2Q9 BGK in NumPy, which the kernels are compared with. Parameters are named as in d2q9.toml."""

import numpy as np

C = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = np.array([4 / 9] + 4 * [1 / 9] + 4 * [1 / 36])


def step(f, g, nx, ny, omega, SOA):  # noqa: N803
    """Write the populations after a step from f into g."""
    shape = (9, ny, nx) if SOA else (ny, nx, 9)
    old = f.reshape(shape).astype(np.float64)
    old = old if SOA else np.moveaxis(old, 2, 0)
    p = np.stack([np.roll(old[i], (cx, cy), axis=(1, 0)) for i, (cx, cy) in enumerate(C)])
    rho = p.sum(axis=0)
    u = np.tensordot(C.T, p, axes=1) / rho
    cu, uu = 3 * np.tensordot(C, u, axes=1), 1.5 * (u**2).sum(axis=0)
    new = p + omega * (W[:, None, None] * rho * (1 + cu + cu**2 / 2 - uu) - p)
    g[:] = (new if SOA else np.moveaxis(new, 0, 2)).ravel()
