// Moments reflected by cut links are added to what arrives over open links: those with c_z as if from the plane below,
// those with c_x alone as if from the neighbouring cells. The rest waits in shared memory until the barrier, because
// registers are scarce: the remaining part with c_y, and what the square of c_z is due in the next plane.
//@begin variants
//@begin returning
                Real from_left[CELLS] = {}, from_right[CELLS] = {};
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    Real* const back = returned + r * RETURNED * LANES + v * 32;
                    Real(&rises)[PENDING] = pending[t][r][v];
                    Shelf& rising = shelves[(t * ROWS + r) * CELLS + v];
                    //@begin return
                    const Word own = unless_silent(links_of(links, t, r, v, here_z, ny, nz));
                    if (anywhere(own)) {
                        if (SHELVED) take<THREADS>(rises, rising.value, thread);
                        reflect(back, rises, from_left[v], from_right[v], own, still[v], right[v], left[v]);
                        if (SHELVED) put<THREADS>(rising.value, rises, thread);
                        returns |= 1u << (r * CELLS + v);
                    }
                    //@end return
                }
                stop_at_sides(right, left, links, lane, first_x, nx);
//@end returning
//@begin enter
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    right[v][STRAIGHT] += from_left[v];
                    left[v][STRAIGHT] += from_right[v];
                }
//@end enter
//@begin returned
            const bool owes = cut_before(links, t, here_z, nz);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    Real& later = owed[(t * ROWS + r) * LANES + v * 32];
                    if (owes) m[r][v][TWICE_UP] += later;
                    later = 0;
                    if (returns >> (r * CELLS + v) & 1u) {
                        later = take_back(current[t][r][v], returned + r * RETURNED * LANES + v * 32);
                    }
                }
            }
//@end returned
//@end variants
