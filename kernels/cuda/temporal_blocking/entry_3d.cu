// The entry in three dimensions.

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(32 * WARPS) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const int nx, const int ny, const int nz,
    const Real omega)
{
//@end signature
    Shelf* const shelves = reinterpret_cast<Shelf*>(shared);
    Exchange* const exchange = reinterpret_cast<Exchange*>(shelves + SHELVES);
    //@default warp
    const int lane = threadIdx.x, warp = threadIdx.y;
    //@end warp
    const Extents n = storage_extents(nx, ny, nz);
    //@default seat
    const int seat = warp * NEXT + lane, thread = warp * 32 + lane;
    //@end seat

    // nothing is computed beyond a wall, so the first and the last tile have no halo there
    const int width = WALLED_X ? WIDTH : (nx + SECTOR * gridDim.x - 1) / (SECTOR * gridDim.x) * SECTOR;
    //@default sizes
    const int height = (ny + gridDim.y - 1) / gridDim.y, depth = (nz + gridDim.z - 1) / gridDim.z;
    //@end sizes
    const int left_x = blockIdx.x * width - BEFORE, first_x = left_x + lane * CELLS;
    const int first_y = blockIdx.y * height + warp * ROWS - STEPS;
    int x = wrapped(first_x, nx);
    const bool after_halo = (WALLED_X && blockIdx.x == 0) || first_x >= left_x + HALO;
    const bool before_halo = (WALLED_X && blockIdx.x + 1 == gridDim.x) || first_x < left_x + HALO + width;
    const bool inside = after_halo && before_halo && first_x >= 0 && first_x < nx;
    //@default offsets
    Index row[ROWS];
    bool stored[ROWS];
    //@end offsets
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int line = warp * ROWS + r - STEPS;
        row[r] = along_y(wrapped(first_y + r, ny), n) + x * PACK;
        //@default stored
        stored[r] = inside && line >= 0 && line < height && first_y + r < ny;
        //@end stored
    }
    //@default chunk
    const int begin = blockIdx.z * depth, end = least(begin + depth, nz), planes = end - begin + 2 * STEPS;
    //@end chunk
    const Index next = along_z(1, n);
    Index pitch = component(PACK, n);
    int next_z = wrapped(begin - STEPS, nz);
    Index from = along_z(next_z, n), to = along_z(begin, n);
    //@default links
    void* const behind = exchange + EXCHANGES;
    //@end links

    Real current[STEPS][ROWS][CELLS][CURRENT] = {}, pending[STEPS][ROWS][CELLS][PENDING] = {};
#pragma unroll
    for (int k = 0; k < SHELVES; ++k) put<THREADS>(shelves[k].value, pending[0][0][0], thread);
    Cells waiting[PREFETCH == 2 ? 1 : ROWS];
    //@default flags
    //@end flags
    //@default arrivals
    //@end arrivals
    const auto fetch_plane = [&]() {
        //@default fetch_numbers
        //@end fetch_numbers
        //@default fetch_rows
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            //@default fetch_row
            fetch_cells(waiting[PREFETCH == 2 ? 0 : r], slots_of(behind, r), source + (from + row[r]), pitch, x);
            //@end fetch_row
        }
        //@end fetch_rows
        //@default fetch_links
        //@end fetch_links
        //@default commit_copies
        if (PREFETCH == 2) copies_begin();
        //@end commit_copies
        next_z = next_z + 1 == nz ? 0 : next_z + 1;
        from = next_z ? from + next : 0;
    };
    if (PREFETCH) fetch_plane();

    // short loop bodies take two planes per iteration, so that pending sums stay in their registers
#pragma unroll (TOGETHER)
    for (int plane = 0; plane < planes; ++plane) {
        if (TOGETHER > 1) forget(pitch);
        if (!PREFETCH) fetch_plane();
        //@default wait_copies
        if (PREFETCH == 2) copies_end();
        //@end wait_copies
        //@default wait_bulk
        //@end wait_bulk
        //@default next
        //@end next
        Real m[ROWS][CELLS][MOMENTS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            //@default take_row
            if (PREFETCH == 2) take_cells(waiting[0], slots_of(behind, r));
            //@end take_row
            widen_cells(m[r], waiting[PREFETCH == 2 ? 0 : r]);
        }
        //@default early
        if (PREFETCH && (BEYOND || plane + 1 < planes)) fetch_plane();
        //@end early
        //@default way
        //@end way
        //@default stages
#pragma unroll
        for (int t = 0; t < STEPS; ++t) {
            Exchange& sent = exchange[STEPS == 1 ? plane % 2 : t];
            Real up[ROWS][CELLS][ACROSS], down[ROWS][CELLS][ACROSS], level[ROWS][CELLS][LEVEL];
            //@default cut
            //@end cut
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                //@default skip
                //@end skip
                Real still[CELLS][LINES], right[CELLS][MOVERS], left[CELLS][MOVERS];
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    //@begin relax
                    relax(m[r][v], omega);
                    //@end relax
                }
                //@default silence
                //@end silence
#pragma unroll
                for (int v = 0; v < CELLS; ++v) spread(m[r][v], still[v], right[v], left[v]);
                //@default returning
                //@end returning
                hand_across(right, left, lane);
                //@default enter
                //@end enter
#pragma unroll
                for (int v = 0; v < CELLS; ++v) sum_up(still[v], right[v], left[v], up[r][v], down[r][v], level[r][v]);
            }
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                put<LANES>(sent.up.value, up[ROWS - 1][v], seat + v * 32);
                put<LANES>(sent.down.value, down[0][v], seat + v * 32);
            }
            //@default ahead
            // inside a branch, because the compiler does not move the prefetch across it
            if (PREFETCH && t == 0 && (BEYOND || plane + 1 < planes)) fetch_plane();
            //@end ahead
            //@default meet
            __syncthreads();
            //@end meet
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                Real below[ACROSS], above[ACROSS];
                take<LANES>(below, sent.up.value, seat + v * 32 - NEXT);
                take<LANES>(above, sent.down.value, seat + v * 32 + NEXT);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const Real(&rising)[ACROSS] = r ? up[r ? r - 1 : 0][v] : below;
                    const Real(&falling)[ACROSS] = r < ROWS - 1 ? down[r < ROWS - 1 ? r + 1 : r][v] : above;
                    Shelf& shelf = shelves[(t * ROWS + r) * CELLS + v];
                    if (SHELVED) take<THREADS>(pending[t][r][v], shelf.value, thread);
                    gather(rising, falling, level[r][v], current[t][r][v], pending[t][r][v], m[r][v]);
                    if (SHELVED) put<THREADS>(shelf.value, pending[t][r][v], thread);
                }
            }
            //@default returned
            //@end returned
        }
        //@end stages
        if (plane >= 2 * STEPS) {
            //@default store_numbers
            //@end store_numbers
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                //@default store_row
                if (stored[r]) store_cells(m[r], target + (to + row[r]), pitch, x);
                //@end store_row
            }
            to += next;
        }
    }
    //@default last_copies
    if (BEYOND && PREFETCH == 2) copies_end();
    //@end last_copies
    //@default last_bulk
    //@end last_bulk
}
//@end entry

// Tapered chunks: blocks that start later have fewer planes, so that all blocks finish at about the same time.
//@begin tapered
//@begin chunk
    const int chunks = gridDim.z;
    //@default bottom
    const auto bottom = [&](const int k) { return least(depth * k * (2 * chunks - k) / chunks, nz); };
    //@end bottom
    const int begin = bottom(blockIdx.z), end = bottom(blockIdx.z + 1), planes = end - begin + 2 * STEPS;
//@end chunk
//@end tapered
