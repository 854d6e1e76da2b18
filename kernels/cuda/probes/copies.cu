// Micro-benchmarks of bounds other than the bandwidth of aligned streams; they have no lattice. Compiler options
// define: STREAMS; ACCESS, the type of one access; RUN, contiguous accesses of a stream before the next one (0: all of
// them); ROW, accesses of a row that a block takes (0: threads are contiguous); LOCAL, words of local memory of a
// thread; EARLY, whether launches are programmatic dependent launches.

__device__ __forceinline__ unsigned long long place(const int q, const int at, const int accesses) {
    if (RUN == 0) return (unsigned long long)q * accesses + at;
    constexpr int run = RUN > 0 ? RUN : 1;
    return ((unsigned long long)(at / run) * STREAMS + q) * run + at % run;
}

__device__ __forceinline__ unsigned first(const unsigned short value) { return value; }
__device__ __forceinline__ unsigned first(const unsigned value) { return value; }
__device__ __forceinline__ unsigned first(const uint2 value) { return value.x; }
__device__ __forceinline__ unsigned first(const uint4 value) { return value.x; }

// Copies all streams. All loads precede all stores.
extern "C" __global__ void copy_runs(const ACCESS* source, ACCESS* target, const int accesses) {
#if EARLY
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, at, accesses)] = value[q];
}

// Displaces streams in turn by -near, 0 and +near accesses, and groups of three by -far, 0 and +far.
__device__ __forceinline__ int displaced(const int q, const int at, const int near, const int far, const int accesses) {
    const int to = at + near * (q % 3 - 1) + far * (q / 3 % 3 - 1);
    return to < 0 ? to + accesses : to < accesses ? to : to - accesses;
}

// Returns the first access of a thread. A block takes a part of rows of 256 accesses.
__device__ __forceinline__ int first_access() {
    const int in_row = blockIdx.x * blockDim.x + threadIdx.x;
    if (ROW == 0) return in_row;
    constexpr int wide = ROW > 0 ? ROW : 1, length = 256, across = length / wide;
    const int row = blockIdx.x / across * (blockDim.x / wide) + threadIdx.x / wide;
    return row * length + blockIdx.x % across * wide + threadIdx.x % wide;
}

// Copies with displaced loads or stores. Threads take `steps` accesses, `apart` from one to the next.
extern "C" __global__ void copy_displaced(
    const ACCESS* source, ACCESS* target, const int accesses, const int load, const int load_far, const int store,
    const int store_far, const int apart, const int steps) {
    const int thread = first_access();
    int at = thread / apart * apart * steps + thread % apart;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, at += apart) {
        if (at >= accesses) return;
        ACCESS value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) {
            value[q] = source[place(q, displaced(q, at, load, load_far, accesses), accesses)];
        }
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) {
            target[place(q, displaced(q, at, store, store_far, accesses), accesses)] = value[q];
        }
    }
}

// Copies with loads, stores or both at places from a list with an entry for each stream and access. ahead: accesses by
// which entries are prefetched; 0: none.
extern "C" __global__ void copy_listed(
    const ACCESS* source, ACCESS* target, const unsigned* __restrict__ list, const int accesses, const int loads,
    const int stores, const int ahead) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    if (ahead && at + ahead < accesses) {
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(list + place(q, at + ahead, accesses)));
        }
    }
    unsigned entry[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) entry[q] = list[place(q, at, accesses)];
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, loads ? entry[q] : at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, stores ? entry[q] : at, accesses)] = value[q];
}

// Returns whether an element is the one that its sector lacks, in `holes` of 64 sectors, pseudorandomly.
__device__ __forceinline__ bool lacking(const int at, const int holes) {
    constexpr int together = 32 / sizeof(ACCESS);
    unsigned mixed = at / together;
    mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
    mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
    return at % together == 0 && (mixed >> 16) % 64 < holes;
}

// Copies, to another array or in place, leaving out the same elements of all streams.
extern "C" __global__ void copy_holes(const ACCESS* source, ACCESS* target, const int accesses, const int holes) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses || lacking(at, holes)) return;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, at, accesses)] = value[q];
}

// Copies all streams; where copy_holes would leave out an element, a thread `later` accesses away (a power of two)
// stores it, so that the sector is written in two pieces.
extern "C" __global__ void copy_pieces(
    const ACCESS* source, ACCESS* target, const int accesses, const int pieces, const int later) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    const int to = lacking(at & ~later, pieces) ? at ^ later : at;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, to, accesses)] = value[q];
}

// Copies tiles one after another, and loads each tile again after `back` others have been copied.
extern "C" __global__ void copy_again(const ACCESS* source, ACCESS* target, const int tiles, const int back) {
    constexpr int EACH = 8;  // accesses of a thread
    const unsigned long long before = (blockIdx.x + (unsigned long long)(tiles - back)) % tiles;
    const ACCESS* const tile = source + (unsigned long long)blockIdx.x * EACH * blockDim.x + threadIdx.x;
    const ACCESS* const other = source + before * EACH * blockDim.x + threadIdx.x;
    ACCESS* const to = target + (tile - source);
    ACCESS value[EACH], seen[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) value[k] = tile[k * blockDim.x];
#pragma unroll
    for (int k = 0; k < EACH; ++k) seen[k] = other[k * blockDim.x];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        // a value loaded again replaces its copy, so that the compiler cannot drop the load
        to[k * blockDim.x] = first(seen[k]) == 0xffffffffu ? seen[k] : value[k];
    }
}

// Follows pointers, from where the previous launch ended: each load depends on the one before.
extern "C" __global__ void chase(const unsigned* next, unsigned* place, const int steps) {
    unsigned at = place[0];
    for (int step = 0; step < steps; ++step) at = next[at];
    place[0] = at;
}

// Stores and loads local memory, as spilled registers do.
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
