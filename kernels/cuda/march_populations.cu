// The entry of march.cu for populations in three dimensions. All of a cell's values are many: each has its place a pitch
// behind the one before, so that an address is one instruction, and planes are taken two at a time, so that a value that
// waits for the next plane does so in the register that it arrived in.

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(32 * WARPS) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const int nx, const int ny, const int nz,
    const Real omega)
//@end signature
{
    Exchange* const exchange = reinterpret_cast<Exchange*>(shared);
    const int lane = threadIdx.x, warp = threadIdx.y;
    const Extents n = storage_extents(nx, ny, nz);
    const int seat = warp * NEXT + lane;

    const int width = (nx + SECTOR * gridDim.x - 1) / (SECTOR * gridDim.x) * SECTOR;
    const int height = (ny + gridDim.y - 1) / gridDim.y, depth = (nz + gridDim.z - 1) / gridDim.z;
    const int column = lane * CELLS - HALO, first_x = blockIdx.x * width + column;
    const int first_y = blockIdx.y * height + warp * ROWS - STEPS;
    const int x = wrapped(first_x, nx);
    const bool inside = column >= 0 && column < width && first_x < nx;
    Index row[ROWS];
    bool stored[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int line = warp * ROWS + r - STEPS;
        row[r] = along_y(wrapped(first_y + r, ny), n) + x * PACK;
        stored[r] = inside && line >= 0 && line < height && first_y + r < ny;
    }
    const int begin = blockIdx.z * depth, end = least(begin + depth, nz), planes = end - begin + 2 * STEPS;
    const Index next = along_z(1, n);
    Index pitch = component(PACK, n);
    int next_z = wrapped(begin - STEPS, nz);
    Index from = along_z(next_z, n), to = along_z(begin, n);

    Real current[STEPS][ROWS][CELLS][CURRENT] = {}, pending[STEPS][ROWS][CELLS][PENDING] = {};
    Cells waiting[PREFETCH == 2 ? 1 : ROWS];
    void* const behind = exchange + EXCHANGES;
    const auto fetch_plane = [&]() {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            fetch_cells(waiting[PREFETCH == 2 ? 0 : r], slots_of(behind, r), source + (from + row[r]), pitch, x);
        }
        if (PREFETCH == 2) copies_begin();
        next_z = next_z + 1 == nz ? 0 : next_z + 1;
        from = next_z ? from + next : 0;
    };
    if (PREFETCH) fetch_plane();

#pragma unroll 2
    for (int plane = 0; plane < planes; ++plane) {
        forget(pitch);
        if (!PREFETCH) fetch_plane();
        if (PREFETCH == 2) copies_end();
        Real m[ROWS][CELLS][MOMENTS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (PREFETCH == 2) take_cells(waiting[0], slots_of(behind, r));
            widen_cells(m[r], waiting[PREFETCH == 2 ? 0 : r]);
        }
        if (PREFETCH && plane + 1 < planes) fetch_plane();
#pragma unroll
        for (int t = 0; t < STEPS; ++t) {
            Exchange& shelf = exchange[t];
            Real up[ROWS][CELLS][ACROSS], down[ROWS][CELLS][ACROSS], level[ROWS][CELLS][LEVEL];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                Real still[CELLS][LINES], right[CELLS][MOVERS], left[CELLS][MOVERS];
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    //@begin relax
                    relax(m[r][v], omega);
                    //@end relax
                    spread(m[r][v], still[v], right[v], left[v]);
                }
                hand_across(right, left, lane);
#pragma unroll
                for (int v = 0; v < CELLS; ++v) sum_up(still[v], right[v], left[v], up[r][v], down[r][v], level[r][v]);
            }
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                send(shelf.up, up[ROWS - 1][v], seat + v * 32);
                send(shelf.down, down[0][v], seat + v * 32);
            }
            __syncthreads();
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                Real below[ACROSS], above[ACROSS];
                receive(below, shelf.up, seat + v * 32 - NEXT);
                receive(above, shelf.down, seat + v * 32 + NEXT);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const Real(&rising)[ACROSS] = r ? up[r ? r - 1 : 0][v] : below;
                    const Real(&falling)[ACROSS] = r < ROWS - 1 ? down[r < ROWS - 1 ? r + 1 : r][v] : above;
                    gather(rising, falling, level[r][v], current[t][r][v], pending[t][r][v], m[r][v]);
                }
            }
        }
        if (plane < 2 * STEPS) continue;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (stored[r]) store_cells(m[r], target + (to + row[r]), pitch, x);
        }
        to += next;
    }
}
//@end entry
