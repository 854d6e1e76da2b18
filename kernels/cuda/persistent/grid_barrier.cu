#ifdef __CUDACC__
// Release: what the block wrote is visible to all that see its arrival.
__device__ __forceinline__ void arrive(unsigned* arrivals) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
}
__device__ __forceinline__ void wait_for(unsigned* arrivals, const unsigned wanted) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
    } while (static_cast<int>(seen - wanted) < 0);  // counts may wrap around
}
// Release of one block: publishes the steps that it has done.
__device__ __forceinline__ void say(unsigned* flag, const unsigned step) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(step) : "memory");
}
// Hides a number from the compiler: what depends on it is recomputed where it is used. Otherwise hundreds of addresses
// would be kept in registers across the loop over steps.
__device__ __forceinline__ int anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}
#endif  // the host provides these otherwise

// The last block to leave resets the count for the next launch.
__device__ __forceinline__ void go(unsigned* barrier, const unsigned blocks) {
    if (atomicInc(barrier + 1, blocks - 1) == blocks - 1) barrier[0] = 0;
}

constexpr int THREADS = BLOCK_X * BLOCK_Y;
constexpr int APART = 32;  // words from one block's flag to the next: a cache line each

__device__ __forceinline__ unsigned* flag_of(unsigned* barrier, const int y, const int z) {
    return barrier + APART * (z * gridDim.y + y);
}

// Waits until the surrounding blocks have done `step` steps; one thread per neighbour.
__device__ __forceinline__ void wait_for_neighbours(unsigned* barrier, const int number, const unsigned step) {
    for (int n = number; n < 9; n += THREADS) {
        const int y = (blockIdx.y + gridDim.y + n % 3 - 1) % gridDim.y, z = (blockIdx.z + gridDim.z + n / 3 - 1) % gridDim.z;
        wait_for(flag_of(barrier, y, z), step);
    }
}
extern __shared__ uint4 shared[];

//@begin all
//@begin begin
    const unsigned blocks = gridDim.y * gridDim.z;
//@end begin
//@begin wait
        if (number == 0 && step) wait_for(barrier, step * blocks);
//@end wait
//@begin go
    if (number == 0) go(barrier, blocks);
//@end go
//@begin early
//@end early
//@begin late
        if (number == 0 && step + 1 < steps) arrive(barrier);
//@end late
//@begin said
        if (number == 0) arrive(barrier);
//@end said
//@begin last
    if (number == 0) wait_for(barrier, steps * blocks);
//@end last
//@end all

//@begin neighbours
//@begin begin
    unsigned* const flag = flag_of(barrier, blockIdx.y, blockIdx.z);
    const unsigned begun = *flag;
//@end begin
//@begin wait
        if (step) wait_for_neighbours(barrier, number, begun + step);
//@end wait
//@begin go
//@end go
//@begin early
        __syncthreads();
        if (number == 0) say(flag, begun + step + 1);
//@end early
//@begin late
//@end late
//@begin said
        if (number == 0) say(flag, begun + step + 1);
//@end said
//@begin last
    wait_for_neighbours(barrier, number, begun + steps);
//@end last
//@end neighbours
