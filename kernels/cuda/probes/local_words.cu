// Words of local memory, as kernels with spilled registers have them. Compiler options define STREAMS and ACCESS
// (number and type of the values that a thread moves) and LOCAL (words of local memory of a thread).

__device__ __forceinline__ unsigned first(const unsigned short value) { return value; }
__device__ __forceinline__ unsigned first(const unsigned value) { return value; }
__device__ __forceinline__ unsigned first(const uint2 value) { return value.x; }
__device__ __forceinline__ unsigned first(const uint4 value) { return value.x; }

// Stores words after all values are loaded, and loads them again. words: a multiple of four, less than LOCAL. Returns
// their sum, which the caller tests before it stores.
__device__ __forceinline__ unsigned sum_of_words(
    volatile unsigned (&kept)[LOCAL], const ACCESS (&value)[STREAMS], const int at, const int words) {
    // the address depends on all loaded values
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
