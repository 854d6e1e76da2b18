// Micro-benchmark of registers that a kernel has spilled. No lattice is in it. The options define STREAMS and ACCESS (the
// type that a thread moves at once) and LOCAL (words of local memory that a thread has room for).

__device__ __forceinline__ unsigned first(const unsigned short value) { return value; }
__device__ __forceinline__ unsigned first(const unsigned value) { return value; }
__device__ __forceinline__ unsigned first(const uint2 value) { return value.x; }
__device__ __forceinline__ unsigned first(const uint4 value) { return value.x; }

// A copy of all streams by threads that write words of local memory when their loads are done, read them again, and then
// store; they take `steps` accesses one after another, `apart` from one to the next. words: a multiple of four, less
// than LOCAL.
extern "C" __global__ void copy_spilled(
    const ACCESS* source, ACCESS* target, const int accesses, const int words, const int apart, const int steps) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int at = thread / apart * apart * steps + thread % apart;
    volatile unsigned kept[LOCAL];
#pragma unroll 1
    for (int step = 0; step < steps; ++step, at += apart) {
        if (at >= accesses) return;
        ACCESS value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) value[q] = source[(unsigned long long)q * accesses + at];
        // where the words lie depends on all that was loaded
        unsigned moved = 0;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) moved |= first(value[q]) == 0xffffffffu;
#pragma unroll 1
        for (int n = 0; n < words; n += 4) {
#pragma unroll
            for (int k = 0; k < 4; ++k) kept[n + k + moved] = at + n + k;
        }
        unsigned sum = 0;
#pragma unroll 1
        for (int n = 0; n < words; n += 4) {
#pragma unroll
            for (int k = 0; k < 4; ++k) sum += kept[n + k + moved];
        }
        // nothing is stored before the words are there: their sum, which is even, is looked at first
        if (words && sum == 0xffffffffu) return;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[(unsigned long long)q * accesses + at] = value[q];
    }
}
