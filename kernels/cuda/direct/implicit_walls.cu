// Implicit bounce-back: solid cells are skipped. Their populations stay where the next step, which uses the slots in
// opposite order, finds them as those of the opposite directions. A solid cell thus costs only its flag (bit 0 of its
// word, see flags.cu). What a wall reflects arrives after two steps. Source: Geier, Schoenherr 2017.

// Returns whether all threads that exchange values with this one have solid cells only.
__device__ __forceinline__ bool skipped(const Words& flags, const Lane& lane) {
    bool fluid = false;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) fluid = fluid || !(flags.of[v] & 1u);
    return CELLS == 1 ? !fluid : !__ballot_sync(lane.active, fluid);
}

// Leaves solid cell v of a vector unchanged: the step stores each population opposite to where it was loaded.
__device__ __forceinline__ void reverse(Real (&f)[Q][CELLS], const int v) {
    const auto exchange = [&](const int i, const int j) {
        const Real kept = f[i][v];
        f[i][v] = f[j][v];
        f[j][v] = kept;
    };
    //@begin pairs
    exchange(1, 2);
    //@end pairs
}
