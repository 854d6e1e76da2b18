// Micro-benchmarks of what bounds kernels besides the bandwidth of aligned streams. No lattice is in them. The options
// define STREAMS and ACCESS (the type that a thread moves at once), RUN (accesses of a stream that lie together before
// those of the next one begin; 0: all of them) and LOCAL (words of local memory of a thread).

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
