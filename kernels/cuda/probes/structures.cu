// Micro-benchmark of arrays of structures, and of what the L2 cache keeps of them. No lattice is in it. The options
// define STREAMS (elements of a structure), ACCESS (their type) and LOCAL (words of local memory that a thread has room
// for).

// Where an element lies: the first one is displaced by `near` structures back, the next one not at all, the one after it
// by as many forward, and so on; and by groups of three, back, not at all and forward by `far`.
__device__ __forceinline__ unsigned long long place(
    const int q, const int at, const int near, const int far, const int accesses) {
    const int to = at + near * (q % 3 - 1) + far * (q / 3 % 3 - 1);
    return (unsigned long long)(to < 0 ? to + accesses : to < accesses ? to : to - accesses) * STREAMS + q;
}

// A copy of all structures by as many threads as are there at the same time: each takes `steps` of them one after
// another, `apart` from one to the next. When its loads are done it writes words of local memory and reads them again
// before it stores. words: a multiple of four, less than LOCAL.
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
        // nothing is stored before the words are there: their sum, which is even, is looked at first
        if (words && sum == 0xffffffffu) return;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[place(q, at, store, store_far, accesses)] = value[q];
    }
}

// A copy of some elements of each structure: those of a mask, from one array into the same places of another one. What it
// stores is a part of nearly all of its sectors.
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
