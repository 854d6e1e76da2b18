// Words of local memory, as a kernel has them whose registers are spilled: what micro-benchmarks of them have in common.
// The options define STREAMS and ACCESS (how many values a thread moves at once, and their type) and LOCAL (words of
// local memory that a thread has room for).

__device__ __forceinline__ unsigned first(const unsigned short value) { return value; }
__device__ __forceinline__ unsigned first(const unsigned value) { return value; }
__device__ __forceinline__ unsigned first(const uint2 value) { return value.x; }
__device__ __forceinline__ unsigned first(const uint4 value) { return value.x; }

// Writes them when all values are loaded, and reads them again. words: a multiple of four, less than LOCAL. Returns their
// sum, to be looked at before anything is stored.
__device__ __forceinline__ unsigned sum_of_words(
    volatile unsigned (&kept)[LOCAL], const ACCESS (&value)[STREAMS], const int at, const int words) {
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
    return sum;
}
