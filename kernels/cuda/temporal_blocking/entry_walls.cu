// Regions of the entry in three dimensions if links can be cut.

//@begin variants
//@begin warp
    const int lane = threadIdx.x, warp = alike(threadIdx.y);
//@end warp
//@begin seat
    const int seat = threadIdx.y * NEXT + threadIdx.x, thread = threadIdx.y * 32 + threadIdx.x;
//@end seat
//@begin offsets
    const Kept row = {reinterpret_cast<unsigned*>(exchange + EXCHANGES) + thread};
    const Kept stored = {row.first + ROWS * THREADS}, column = {stored.first + ROWS * THREADS};
    column[0] = x;
//@end offsets
//@begin stored
        stored[r] = inside && line >= 0 && line < height && first_y + r < ny ? row[r] : NOWHERE;
//@end stored
//@begin links
    // buffers at constant distances behind the rows, so that one register addresses all of them
    Real* const returned = reinterpret_cast<Real*>(row.first - thread + (2 * ROWS + 1) * THREADS) + seat;
    Real* const owed = returned + ROWS * RETURNED * LANES;
    char* const marks = reinterpret_cast<char*>(owed - seat + STEPS * ROWS * LANES);
    void* const behind = marks + WORDS;

    Links links;
    find_links(links, marks, first_x, first_y, begin - STEPS, nx, ny);
//@end links
//@begin fetch_numbers
        const int x = column[0];
        const Numbers at = side_by_side(row);
//@end fetch_numbers
//@begin fetch_row
            fetch_cells(waiting[PREFETCH == 2 ? 0 : r], slots_of(behind, r), source + (from + at[r]), pitch, x);
//@end fetch_row
//@begin next
        // the plane prefetched one iteration ago has arrived. Words come first, since they select the code of all
        // stages. Their addresses are recomputed, because registers are scarce with walls
        next_links(links, marks);
//@end next
//@begin way
        const Way way = plane < 2 * STEPS - 2 ? MIXED : alike(way_of(links, begin - STEPS + plane, nz));
//@end way
//@begin meet
            meet_block();
//@end meet
//@begin store_numbers
            const int x = column[0];
            const Numbers at = side_by_side(stored);
//@end store_numbers
//@begin store_row
                if (at[r] != NOWHERE) store_cells(m[r], target + (to + at[r]), pitch, x);
//@end store_row
//@end variants

// Regions of a stage of warps with any cut links.
//@begin stage
//@begin cut
            if (plane < 2 * t) {  // no later stage uses what this one would finish
                // the block still synchronises, so that its sums are read before the next ones replace them
                //@default early_meet
                meet_block();
                //@end early_meet
                break;
            }
            const int here_z = begin - STEPS + plane - t;
            //@default returns
            //@end returns
//@end cut
//@begin skip
                if (beyond(first_y + r, ny, WALLED_Y) || beyond(here_z, nz, WALLED_Z)) {
                    send_nothing(up[r], down[r], level[r]);
                    continue;
                }
//@end skip
//@begin silence
                silence(m[r], links, t, r, here_z, ny, nz);
//@end silence
//@begin returning
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    Real* const back = returned + r * RETURNED * LANES + v * 32;
                    //@begin return
                    const Word own = unless_silent(links_of(links, t, r, v, here_z, ny, nz));
                    reflect(back, own, still[v], right[v], left[v]);
                    //@end return
                }
                stop_at_sides(right, left, links, lane, first_x, nx);
//@end returning
//@begin returned
            const bool owes = cut_before(links, t, here_z, nz);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    Real& later = owed[(t * ROWS + r) * LANES + v * 32];
                    const Real* const back = returned + r * RETURNED * LANES + v * 32;
                    if (owes) m[r][v][TWICE_UP] += later;
                    //@begin take
                    const Word own = unless_silent(links_of(links, t, r, v, here_z, ny, nz));
                    later = take_back(current[t][r][v], own, back);
                    //@end take
                }
            }
//@end returned
//@end stage

// If words in memory give the cut links.
//@begin words
//@begin fetch_links
        fetch_links(links, words, next_z, nx, ny, nz);
//@end fetch_links
//@end words
