// A warp waits for its two neighbours only, and not for its thread block, so that warps compute while others exchange.
// Each exchange has a flag per warp; the neighbours have seen it before it is used again.
__device__ __forceinline__ void make_flags(Flag* flags, const int lane, const int warp) {
    for (int k = 0; lane == 0 && k < EXCHANGES; ++k) make(flags + k * WARPS + warp);
    __syncthreads();
}

__device__ __forceinline__ void meet_neighbours(
    Flag* flags, const int lane, const int warp, const int plane, const int t) {
    Flag* const own = flags + (STEPS == 1 ? plane % 2 : t) * WARPS + warp;
    const unsigned parity = (STEPS == 1 ? plane / 2 : plane) & 1;
    __syncwarp();
    if (lane == 0) raise(own);
    await(own - (warp > 0), parity);
    await(own + (warp < WARPS - 1), parity);
}

//@begin variants
//@begin flags
    Flag* const flags = reinterpret_cast<Flag*>(static_cast<char*>(behind) + (PREFETCH == 2 ? ROWS * SLOTS : 0));
    make_flags(flags, lane, warp);
//@end flags
//@begin meet
            meet_neighbours(flags, lane, warp, plane, t);
//@end meet
//@begin early_meet
                meet_neighbours(flags, lane, warp, plane, t);
//@end early_meet
//@end variants
