// The entry in two dimensions: each warp goes up along y on its own. Nothing crosses warps, so there is no barrier, and
// shared memory holds prefetched values only. What is z in three dimensions is y here.

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(32 * WARPS) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const int nx, const int ny, const int nz,
    const Real omega)
{
//@end signature
    const int lane = threadIdx.x, warp = threadIdx.y;
    const Extents n = storage_extents(nx, ny, nz);

    const int tiles = gridDim.x * WARPS, width = (nx + SECTOR * tiles - 1) / (SECTOR * tiles) * SECTOR;
    const int column = lane * CELLS - HALO, first_x = (blockIdx.x * WARPS + warp) * width + column;
    const int x = wrapped(first_x, nx);
    const bool stored = column >= 0 && column < width && first_x < nx;
    const int depth = (ny + gridDim.y - 1) / gridDim.y;
    const int begin = blockIdx.y * depth, end = least(begin + depth, ny);
    int next_y = wrapped(begin - STEPS, ny), y = begin;
    //@default links
    void* const behind = shared;
    //@end links

    Real current[STEPS][CELLS][CURRENT] = {}, pending[STEPS][CELLS][PENDING] = {};
    Cells waiting;
    const Index pitch = component(PACK, n);
    //@default arrivals
    //@end arrivals
    const auto fetch_line = [&]() {
        //@default fetch_rows
        fetch_cells(waiting, slots_of(behind, 0), source + (along_y(next_y, n) + x * PACK), pitch, x);
        //@end fetch_rows
        //@default fetch_links
        //@end fetch_links
        //@default commit_copies
        if (PREFETCH == 2) copies_begin();
        //@end commit_copies
        next_y = next_y + 1 == ny ? 0 : next_y + 1;
    };
    if (PREFETCH) fetch_line();

    const int lines = end - begin + 2 * STEPS;
#pragma unroll 1
    for (int line = 0; line < lines; ++line) {
        if (!PREFETCH) fetch_line();
        //@default wait_copies
        if (PREFETCH == 2) copies_end();
        //@end wait_copies
        //@default wait_bulk
        //@end wait_bulk
        //@default next
        //@end next
        Real m[CELLS][MOMENTS];
        //@default take_row
        if (PREFETCH == 2) take_cells(waiting, slots_of(behind, 0));
        //@end take_row
        widen_cells(m, waiting);
        if (PREFETCH && (BEYOND || line + 1 < lines)) fetch_line();
#pragma unroll
        for (int t = 0; t < STEPS; ++t) {
            Real still[CELLS][LINES], right[CELLS][MOVERS], left[CELLS][MOVERS];
            //@default cut
            //@end cut
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                //@begin relax
                relax(m[v], omega);
                //@end relax
            }
            //@default silence
            //@end silence
#pragma unroll
            for (int v = 0; v < CELLS; ++v) spread(m[v], still[v], right[v], left[v]);
            //@default returning
            //@end returning
            hand_across(right, left, lane);
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                Real up[ACROSS], down[ACROSS], level[LEVEL];  // nothing moves across warps
                sum_up(still[v], right[v], left[v], up, down, level);
                gather(up, down, level, current[t][v], pending[t][v], m[v]);
            }
            //@default returned
            //@end returned
        }
        if (line >= 2 * STEPS) {
            //@default store_row
            if (stored) store_cells(m, target + (along_y(y, n) + x * PACK), pitch, x);
            //@end store_row
            ++y;
        }
    }
    //@default last_copies
    if (BEYOND && PREFETCH == 2) copies_end();
    //@end last_copies
    //@default last_bulk
    //@end last_bulk
}
//@end entry

// If links can be cut.
//@begin walls
//@begin links
    void* const behind = reinterpret_cast<char*>(shared) + WORDS;
    Links links;
    find_links(links, shared, first_x, 0, begin - STEPS, nx, 1);
//@end links
//@begin next
        next_links(links, shared);
//@end next
//@begin cut
            const int here_y = begin - STEPS + line - t;
            const bool cuts = links.side != OPEN || others_cut(links, t, here_y, ny);
//@end cut
//@begin silence
            if (cuts) silence(m, links, t, 0, here_y, 1, ny);
//@end silence
//@begin returning
            Real back[CELLS][RETURNED];
            if (cuts) {
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    const Word own = unless_silent(links_of(links, t, 0, v, here_y, 1, ny));
                    //@begin return
                    reflect(back[v], own, still[v], right[v], left[v]);
                    //@end return
                }
                stop_at_sides(right, left, links, lane, first_x, nx);
            }
//@end returning
//@begin returned
            if (cuts) {
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    take_back(current[t][v], unless_silent(links_of(links, t, 0, v, here_y, 1, ny)), back[v]);
                }
            }
//@end returned
//@end walls

// If words in memory give the cut links.
//@begin words
//@begin fetch_links
        fetch_links(links, words, next_y, nx, 1, ny);
//@end fetch_links
//@end words

// If bulk copies fetch the next row.
//@begin bulk
//@begin take_row
        if (PREFETCH == 2) take_cells(waiting, slots_of(behind, 0, shift));
//@end take_row
//@begin wait_bulk
        await(arrived + warp, line & 1);
//@end wait_bulk
//@begin last_bulk
    if (BEYOND) await(arrived + warp, lines & 1);
//@end last_bulk
//@end bulk
