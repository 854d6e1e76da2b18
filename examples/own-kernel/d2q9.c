/* One step of D2Q9 BGK in a periodic box, pull scheme. Macros: SOA, TILE_X, TILE_Y, WRAP. */
static const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const float w[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

static inline long at(int i, int x, int y, int nx, int ny) {
#if SOA
    return ((long)i * ny + y) * nx + x;
#else
    return ((long)y * nx + x) * 9 + i;
#endif
}

static inline int wrapped(int a, int n) {
#if WRAP
    return a < 0 ? a + n : a >= n ? a - n : a;
#else
    return (a + n) % n;
#endif
}

static inline void cell(const float *restrict f, float *restrict g, int x, int y, int nx, int ny, float omega) {
    float p[9], rho = 0, ux = 0, uy = 0;
    for (int i = 0; i < 9; i++) {
        p[i] = f[at(i, wrapped(x - cx[i], nx), wrapped(y - cy[i], ny), nx, ny)];
        rho += p[i];
        ux += cx[i] * p[i];
        uy += cy[i] * p[i];
    }
    ux /= rho;
    uy /= rho;
    float uu = 1.5f * (ux * ux + uy * uy);
    for (int i = 0; i < 9; i++) {
        float cu = 3 * (cx[i] * ux + cy[i] * uy);
        g[at(i, x, y, nx, ny)] = p[i] + omega * (w[i] * rho * (1 + cu + 0.5f * cu * cu - uu) - p[i]);
    }
}

void step(const float *restrict f, float *restrict g, int nx, int ny, float omega) {
#pragma omp parallel for collapse(2)
    for (int y0 = 0; y0 < ny; y0 += TILE_Y)
        for (int x0 = 0; x0 < nx; x0 += TILE_X)
            for (int y = y0; y < y0 + TILE_Y && y < ny; y++)
                for (int x = x0; x < x0 + TILE_X && x < nx; x++)
                    cell(f, g, x, y, nx, ny, omega);
}
