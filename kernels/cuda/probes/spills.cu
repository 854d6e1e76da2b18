// Micro-benchmark of registers that a kernel has spilled. No lattice is in it. The options define STREAMS and ACCESS (the
// type that a thread moves at once) and LOCAL (words of local memory that a thread has room for).

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
        const unsigned sum = sum_of_words(kept, value, at, words);
        // nothing is stored before the words are there: their sum, which is even, is looked at first
        if (words && sum == 0xffffffffu) return;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[(unsigned long long)q * accesses + at] = value[q];
    }
}
