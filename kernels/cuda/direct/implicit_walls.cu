// Implicit bounce-back: a cell that is skipped leaves its populations where the next step, which goes through the slots
// the other way round, finds them as those of the opposite directions. So a solid cell is a wall at no cost but its
// flag: bit 0 of its word (see flags.cu). What a wall sends back comes after two steps. Source: Geier, Schoenherr 2017.

// Whether no thread that exchanges values with this one has a fluid cell.
__device__ __forceinline__ bool skipped(const Words& flags, const Lane& lane) {
    bool fluid = false;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) fluid = fluid || !(flags.of[v] & 1u);
    return CELLS == 1 ? !fluid : !__ballot_sync(lane.active, fluid);
}

// What leaves a solid cell among the fluid ones of a thread as it was: it is written back opposite to where it was read.
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
