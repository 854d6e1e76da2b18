// A block takes planes one after another: it fetches the next one and reads the words of this one from shared memory
// several times. A thread takes only what it fetched itself, so that none waits for another one.
//
// ACCESS: bytes of an access; COUNT: accesses of a thread to a plane; THREADS: of a block; BLOCKS: that share a
// multiprocessor; FETCH: how planes come.

#define NONE 0       // they do not: shared memory keeps what it has
#define REGISTERS 1  // loads, whose words are used once
#define STORED 2     // loads, and stores to shared memory
#define CP_ASYNC 3   // asynchronous copies through L1
#define PAST_L1 4    // asynchronous copies past L1, of 16 bytes

constexpr int WORDS = ACCESS / 4;
constexpr int PLANE = COUNT * THREADS * WORDS;

struct Access {
    unsigned word[WORDS];
};

__device__ __forceinline__ Access read_shared(unsigned place) {
    Access a;
#if ACCESS == 16
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.word[0]), "=r"(a.word[1]), "=r"(a.word[2]), "=r"(a.word[3])
                 : "r"(place));
#else
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a.word[0]) : "r"(place));
#endif
    return a;
}

__device__ __forceinline__ void write_shared(unsigned place, const Access& a) {
#if ACCESS == 16
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(a.word[0]), "r"(a.word[1]),
                 "r"(a.word[2]), "r"(a.word[3]));
#else
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(place), "r"(a.word[0]));
#endif
}

__device__ __forceinline__ Access load(const unsigned* from) {
    Access a;
#if ACCESS == 16
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.word[0]), "=r"(a.word[1]), "=r"(a.word[2]), "=r"(a.word[3])
                 : "l"(from));
#else
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(a.word[0]) : "l"(from));
#endif
    return a;
}

__device__ __forceinline__ void copy_later(unsigned place, const unsigned* from) {
#if FETCH == PAST_L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(ACCESS) : "memory");
#endif
}

// source: `ring` planes; sums: one per thread; planes: that a block takes; passes: reads of each word, a multiple of 4
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    stream_planes(const unsigned* source, unsigned* sums, int ring, int planes, int passes) {
    __shared__ __align__(16) unsigned held[2 * PLANE];
    const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(held)) + threadIdx.x * ACCESS;
    const unsigned* from = source + threadIdx.x * WORDS;
    int next = static_cast<int>(blockIdx.x * 37u % ring);
    unsigned sum = threadIdx.x;
    Access fetched[COUNT];
    for (int n = 0; n < COUNT; ++n) {
        for (int k = 0; k < WORDS; ++k) fetched[n].word[k] = from[n * THREADS * WORDS + k];
        write_shared(mine + n * THREADS * ACCESS, fetched[n]);
        write_shared(mine + (COUNT + n) * THREADS * ACCESS, fetched[n]);
    }
    for (int plane = 0; plane < planes; ++plane) {
        const unsigned here = mine + (plane & 1) * PLANE * 4, there = mine + (~plane & 1) * PLANE * 4;
        next = next + 1 < ring ? next + 1 : 0;
        const unsigned* at = from + static_cast<size_t>(next) * PLANE;
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
#if FETCH == REGISTERS || FETCH == STORED
            fetched[n] = load(at + n * THREADS * WORDS);
#elif FETCH != NONE
            copy_later(there + n * THREADS * ACCESS, at + n * THREADS * WORDS);
#endif
        }
#if FETCH == CP_ASYNC || FETCH == PAST_L1
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
#pragma unroll 4
        for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
            for (int n = 0; n < COUNT; ++n) {
                const Access a = read_shared(here + n * THREADS * ACCESS);
#pragma unroll
                for (int k = 0; k < WORDS; ++k) sum += a.word[k];
            }
        }
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
#if FETCH == STORED
            write_shared(there + n * THREADS * ACCESS, fetched[n]);
#elif FETCH == REGISTERS
#pragma unroll
            for (int k = 0; k < WORDS; ++k) sum += fetched[n].word[k];
#endif
        }
#if FETCH == CP_ASYNC || FETCH == PAST_L1
        asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    }
    sums[blockIdx.x * THREADS + threadIdx.x] = sum;
}
