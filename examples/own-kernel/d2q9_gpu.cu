// One step of D2Q9 BGK in a periodic box, pull scheme, a cell per thread. Macros: SOA; template: how indices wrap.
__constant__ int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float w[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

__device__ inline long long at(int i, int x, int y, int nx, int ny) {
#if SOA
    return ((long long)i * ny + y) * nx + x;
#else
    return ((long long)y * nx + x) * 9 + i;
#endif
}

template <bool MODULO> __device__ inline int wrapped(int a, int n) {
    if (MODULO) return (a + n) % n;
    return a < 0 ? a + n : a >= n ? a - n : a;
}

template <int MODULO>
__global__ void step(const float* __restrict__ f, float* __restrict__ g, int nx, int ny, float omega) {
    const int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    float p[9], rho = 0, ux = 0, uy = 0;
    for (int i = 0; i < 9; i++) {
        p[i] = f[at(i, wrapped<MODULO>(x - cx[i], nx), wrapped<MODULO>(y - cy[i], ny), nx, ny)];
        rho += p[i];
        ux += cx[i] * p[i];
        uy += cy[i] * p[i];
    }
    ux /= rho;
    uy /= rho;
    const float uu = 1.5f * (ux * ux + uy * uy);
    for (int i = 0; i < 9; i++) {
        const float cu = 3 * (cx[i] * ux + cy[i] * uy);
        g[at(i, x, y, nx, ny)] = p[i] + omega * (w[i] * rho * (1 + cu + 0.5f * cu * cu - uu) - p[i]);
    }
}
