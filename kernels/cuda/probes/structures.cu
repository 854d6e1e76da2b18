// Micro-benchmark of arrays of structures, and of what the L2 cache keeps of them. Compiler options define STREAMS
// (elements of a structure), ACCESS (their type) and LOCAL (words of local memory of a thread).

// Returns the place of an element; elements are displaced in turn by -near, 0 and +near structures, and groups of three
// by -far, 0 and +far.
__device__ __forceinline__ unsigned long long place(
    const int q, const int at, const int near, const int far, const int accesses) {
    const int to = at + near * (q % 3 - 1) + far * (q / 3 % 3 - 1);
    return (unsigned long long)(to < 0 ? to + accesses : to < accesses ? to : to - accesses) * STREAMS + q;
}

// Copies all structures with as many threads as are resident: each takes `steps` of them, `apart` from one to the next.
// After its loads it stores words of local memory and loads them again. words: a multiple of four, less than LOCAL.
extern "C" __global__ void copy_structures(
    const ACCESS* source, ACCESS* target, const int accesses, const int load, const int load_far, const int store,
    const int store_far, const int words, const int apart, const int steps) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= apart) return;
    int at = thread;
    volatile unsigned kept[LOCAL];
#pragma unroll 1
    for (int step = 0; step < steps; ++step, at += apart) {
        ACCESS value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, load, load_far, accesses)];
        const unsigned sum = sum_of_words(kept, value, at, words);
        // stores depend on the words: their sum is even, so this test never holds
        if (words && sum == 0xffffffffu) return;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[place(q, at, store, store_far, accesses)] = value[q];
    }
}

// Copies the elements of a mask of each structure, to the same places of another array. Nearly all of its sectors are
// written in part.
extern "C" __global__ void copy_parts(const ACCESS* source, ACCESS* target, const int accesses, const unsigned mask) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    const unsigned long long first = (unsigned long long)at * STREAMS;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) {
        if (mask >> q & 1) value[q] = source[first + q];
    }
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) {
        if (mask >> q & 1) target[first + q] = value[q];
    }
}
