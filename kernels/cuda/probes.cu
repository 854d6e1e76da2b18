// Micro-benchmarks of what bounds kernels besides the bandwidth of aligned streams. No lattice is in them. The options
// define STREAMS and ACCESS (the type that a thread moves at once), RUN (accesses of a stream that lie together before
// those of the next one begin; 0: all of them), LOCAL (words of local memory of a thread), LISTED (whether loads, 1, or
// stores, 2, or both find their place in a list) and EARLY (whether a launch begins before the one before it has ended).

__device__ __forceinline__ unsigned long long place(const int q, const int at, const int accesses) {
    if (RUN == 0) return (unsigned long long)q * accesses + at;
    constexpr int run = RUN > 0 ? RUN : 1;
    return ((unsigned long long)(at / run) * STREAMS + q) * run + at % run;
}

__device__ __forceinline__ int shifted(const int at, const int shift, const int accesses) {
    return at + shift < accesses ? at + shift : at + shift - accesses;
}

// Copies `turns` times; each time a block takes other accesses, so that nothing waits for it in the cache next to it.
// All loads come before all stores. load, store: accesses by which one side is displaced.
extern "C" __global__ void copy_runs(
    const ACCESS* source, ACCESS* target, const int accesses, const int load, const int store, const int turns) {
#if EARLY
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    for (int turn = 0; turn < turns; ++turn) {
        const int at = (int)((blockIdx.x + turn * 1009ULL) % gridDim.x) * blockDim.x + threadIdx.x;
        if (at >= accesses) continue;
        const int from = shifted(at, load, accesses), to = shifted(at, store, accesses);
        ACCESS value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, from, accesses)];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[place(q, to, accesses)] = value[q];
    }
}

// The same by threads that walk: each takes so many accesses one after another, `apart` from one to the next.
extern "C" __global__ void copy_walk(
    const ACCESS* source, ACCESS* target, const int accesses, const int apart, const int steps) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int at = thread / apart * apart * steps + thread % apart;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, at += apart) {
        if (at >= accesses) return;
        ACCESS value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, accesses)];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[place(q, at, accesses)] = value[q];
    }
}

// A copy whose loads, or stores, or both find their place in a list with an entry for each stream and access.
extern "C" __global__ void copy_listed(
    const ACCESS* source, ACCESS* target, const unsigned* __restrict__ list, const int accesses) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    unsigned entry[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) entry[q] = list[place(q, at, accesses)];
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, LISTED & 1 ? entry[q] : at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, LISTED & 2 ? entry[q] : at, accesses)] = value[q];
}

// Follows pointers, from where the launch before left off: each load waits for the one before.
extern "C" __global__ void chase(const unsigned* next, unsigned* place, const int steps) {
    unsigned at = place[0];
    for (int step = 0; step < steps; ++step) at = next[at];
    place[0] = at;
}

// Writes and reads local memory, as what finds no register does.
extern "C" __global__ void spill(unsigned* target, const int turns) {
    volatile unsigned kept[LOCAL];
    unsigned sum = threadIdx.x;
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll 16
        for (int n = 0; n < LOCAL; ++n) kept[n] = sum + n;
#pragma unroll 16
        for (int n = 0; n < LOCAL; ++n) sum += kept[n];
    }
    target[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
