// Micro-benchmark of spilled registers. Compiler options define STREAMS, ACCESS (type of one access) and LOCAL (words
// of local memory of a thread).

// Copies all streams; after its loads a thread stores words of local memory and loads them again, then it stores. A
// thread takes `steps` accesses, `apart` from one to the next. words: a multiple of four, less than LOCAL.
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
        // stores depend on the words: their sum is even, so this test never holds
        if (words && sum == 0xffffffffu) return;
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) target[(unsigned long long)q * accesses + at] = value[q];
    }
}
