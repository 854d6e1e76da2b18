//@begin moments
// Computes density and velocity of cell v before the collision. Stored populations are shifted by the weights.
__device__ __forceinline__ void moments(const Real (&f)[Q][CELLS], const int v, Real (&m)[4][CELLS]) {
    const Real rho = f[0][v] + f[1][v] + f[2][v] + unit;
    m[0][v] = rho / unit;
    m[1][v] = (f[1][v] - f[2][v]) / rho;
    m[2][v] = 0;
    m[3][v] = 0;
}
//@end moments

// Stores density and velocity of the thread's cells in four arrays of nx x ny x nz, without padding.
__device__ __forceinline__ void leave(
    const Real (&m)[4][CELLS], Real* target, const int x, const int y, const int z, const int nx, const int ny,
    const int nz) {
    const Offset row = (Offset(z) * ny + y) * nx, cells = Offset(nx) * ny * nz;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int v = 0; v < CELLS; ++v) target[k * cells + row + (x + v)] = m[k][v];
    }
}

//@begin entry
//@end entry
