// Micro-benchmarks of what bounds kernels besides the bandwidth of aligned streams. No lattice is in them. The options
// define STREAMS and ACCESS (the type that a thread moves at once), RUN (accesses of a stream that lie together before
// those of the next one begin; 0: all of them), ROW (accesses of a row that a block takes; 0: its threads are side by
// side), LOCAL (words of local memory of a thread) and EARLY (whether a launch begins before the one before it has ended).

__device__ __forceinline__ unsigned long long place(const int q, const int at, const int accesses) {
    if (RUN == 0) return (unsigned long long)q * accesses + at;
    constexpr int run = RUN > 0 ? RUN : 1;
    return ((unsigned long long)(at / run) * STREAMS + q) * run + at % run;
}

__device__ __forceinline__ unsigned first(const unsigned short value) { return value; }
__device__ __forceinline__ unsigned first(const unsigned value) { return value; }
__device__ __forceinline__ unsigned first(const uint2 value) { return value.x; }
__device__ __forceinline__ unsigned first(const uint4 value) { return value.x; }

// A copy of all streams. All loads come before all stores.
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

// By how many accesses a stream is displaced: the first by `near` back, the next one not at all, the one after it by as
// many forward, and so on; and by groups of three, back, not at all and forward by `far`.
__device__ __forceinline__ int displaced(const int q, const int at, const int near, const int far, const int accesses) {
    const int to = at + near * (q % 3 - 1) + far * (q / 3 % 3 - 1);
    return to < 0 ? to + accesses : to < accesses ? to : to - accesses;
}

// Which access a thread takes first. Of rows of 256 accesses, a block takes a part of as many as it has threads for.
__device__ __forceinline__ int first_access() {
    const int in_row = blockIdx.x * blockDim.x + threadIdx.x;
    if (ROW == 0) return in_row;
    constexpr int wide = ROW > 0 ? ROW : 1, length = 256, across = length / wide;
    const int row = blockIdx.x / across * (blockDim.x / wide) + threadIdx.x / wide;
    return row * length + blockIdx.x % across * wide + threadIdx.x % wide;
}

// The same where loads, or stores, are displaced, each stream by an amount of its own; by threads that take `steps`
// accesses one after another, `apart` from one to the next.
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

// A copy whose loads, or stores, or both find their place in a list with an entry for each stream and access. ahead:
// accesses ahead of which entries are asked for; 0: none are.
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

// Whether an element is the one that its sector lacks: those of `holes` sectors in 64 do, in no order.
__device__ __forceinline__ bool lacking(const int at, const int holes) {
    constexpr int together = 32 / sizeof(ACCESS);
    unsigned mixed = at / together;
    mixed = (mixed ^ mixed >> 16) * 0x7feb352du;
    mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
    return at % together == 0 && (mixed >> 16) % 64 < holes;
}

// A copy, to another array or in place, that leaves out the same elements of all streams.
extern "C" __global__ void copy_holes(const ACCESS* source, ACCESS* target, const int accesses, const int holes) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses || lacking(at, holes)) return;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[place(q, at, accesses)];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[place(q, at, accesses)] = value[q];
}

// A copy of all streams that stores a sector in two pieces where one of the copy before would lack an element: that one
// comes from a thread `later` accesses further on, or back (a power of two).
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

// Copies tiles one after another, and reads each of them again when so many others have been copied since.
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
        // what has been seen stands in the copy where it is the same, and no compiler knows whether it is
        to[k * blockDim.x] = first(seen[k]) == 0xffffffffu ? seen[k] : value[k];
    }
}

// Follows pointers, from where the launch before left off: each load waits for the one before.
extern "C" __global__ void chase(const unsigned* next, unsigned* place, const int steps) {
    unsigned at = place[0];
    for (int step = 0; step < steps; ++step) at = next[at];
    place[0] = at;
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
