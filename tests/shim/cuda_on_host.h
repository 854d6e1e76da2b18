// Runs CUDA text as C++: the threads of a block are fibers of one CPU thread, blocks follow one another, or take turns
// where they have to run at once. cuda_on_host.cpp does that, and is compiled once for all kernels.
//
// Only what the kernels use: built-in variables, warp ballots and shuffles, vector types, half conversion.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__

struct dim3 {
    unsigned x, y, z;
};
typedef dim3 uint3;
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

extern uint4 shared[15 << 10];  // of a block, as large as that of a device may be
extern dim3 threadIdx, blockIdx, gridDim;

// Never made one operation of two: a host without that instruction does not anyway.
inline double __dmul_rn(const double a, const double b) { return a * b; }
inline double __dadd_rn(const double a, const double b) { return a + b; }
inline double __dsub_rn(const double a, const double b) { return a - b; }

template <class T> T __ldcg(const T* place) { return *place; }
inline int anew(const int number) { return number; }
inline void ask_for(const void*) {}
inline unsigned atomicInc(unsigned* place, const unsigned last) {
    const unsigned before = *place;
    *place = before >= last ? 0 : before + 1;
    return before;
}

template <class T> void __stwb(T* place, const T& value) { *place = value; }
template <class T> void fetch(T& to, const void* from) { memcpy(&to, from, sizeof to); }
template <class T> void leave(const T from, void* to) { memcpy(to, &from, sizeof from); }

namespace host {

void yield();
extern unsigned lane;  // of the running thread in its warp
// Hands in a value and waits for all lanes of the mask that still run; returns the round's values.
char (&exchange(unsigned mask, const void* value, size_t bytes))[32][8];
void copy_later(void* to, const void* from, int bytes);
void copies_left(unsigned groups);
void expect(unsigned long long* flag, unsigned bytes);
void copy_run(void* to, const void* from, unsigned bytes, const unsigned long long* flag);
void runs_land(const unsigned long long* flag);
extern unsigned number;  // of the block, in the order of the grid
// Whether a thread of the running block has found others missing, or all there.
extern bool waits, passes;

}  // namespace host

// Copied at once in one launch, and in the next one no sooner than somebody waits for it.
template <int BYTES> void copy_later(void* to, const void* from) {
    if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from)) % (BYTES < 16 ? BYTES : 16)) abort();
    host::copy_later(to, from, BYTES);
}
void copies_begin();
template <int LEFT> void copies_left() { host::copies_left(LEFT); }
inline void copies_end() { copies_left<0>(); }

// Copied at once in one launch, and in the next one no sooner than somebody looks at the flag.
inline void copy_run(void* to, const void* from, const unsigned bytes, unsigned long long* flag) {
    if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes) % 16 || !bytes) abort();
    host::copy_run(to, from, bytes, flag);
}
inline void expect(unsigned long long* flag, const unsigned bytes) { host::expect(flag, bytes); }
inline void before_copies() {}

// Waits until every thread of the block that still runs has come as often.
void __syncthreads();

// Of blocks that run at once: a thread that waits gives way to the other blocks.
inline void arrive(unsigned* arrivals) { ++*arrivals; }
inline void say(unsigned* flag, const unsigned step) { *flag = step; }
inline void wait_for(unsigned* arrivals, const unsigned wanted) {
    while (static_cast<int>(*arrivals - wanted) < 0) {
        host::waits = true;
        host::yield();
    }
    host::passes = true;
}

unsigned __ballot_sync(unsigned mask, bool vote);
inline bool __any_sync(const unsigned mask, const bool vote) { return __ballot_sync(mask, vote); }
inline void __syncwarp() { __ballot_sync(0xffffffffu, true); }

inline bool chosen() {
    __syncwarp();
    return host::lane == 0;
}
inline void meet_block() { __syncthreads(); }

// Of flags that warps raise for one another, or that bytes raise which have come: how often.
inline void make(unsigned long long* flag) { *flag = 0; }
inline void raise(unsigned long long* flag) { ++*flag; }
inline bool raised(const unsigned long long* flag, const unsigned parity) {
    host::runs_land(flag);
    if (*flag % 2 == parity) host::yield();
    return *flag % 2 != parity;
}

template <class T> T __shfl_sync(const unsigned mask, const T value, const int source, const int width) {
    const unsigned lane = host::lane / width * width + static_cast<unsigned>(source) % width;
    if (!(mask >> lane & 1)) abort();  // undefined on a device
    auto& values = host::exchange(mask, &value, sizeof value);
    T found;
    memcpy(&found, values[lane], sizeof found);
    return found;
}

inline unsigned __float_as_uint(const float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
inline float __uint_as_float(const unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

inline float half_to_float(const unsigned short half) {
    const unsigned sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
    float magnitude;
    const unsigned bits = rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : rest << 13;
    memcpy(&magnitude, &bits, 4);
    if (rest < 0x7c00u) magnitude *= 0x1p112f;
    unsigned result;
    memcpy(&result, &magnitude, 4);
    result |= sign;
    memcpy(&magnitude, &result, 4);
    return magnitude;
}

// To nearest, ties to even.
inline unsigned short float_to_half(const float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    const unsigned sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7fffu;
    if (rest >= 0x477ff000u) return sign | 0x7c00u;
    if (rest < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
        float magnitude;
        memcpy(&magnitude, &rest, 4);
        magnitude += 0.5f;
        unsigned sum;
        memcpy(&sum, &magnitude, 4);
        return sign | (sum - 0x3f000000u);
    }
    return sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
}

inline unsigned floats_to_halves(const float low, const float high) {
    return float_to_half(low) | static_cast<unsigned>(float_to_half(high)) << 16;
}

namespace host {

enum How { as_loop, as_fibers, together };

// as_fibers: the threads of a block talk to one another; together: blocks do, too. backwards: the last block comes
// first. Returns how many bytes of shared memory behind the given ones were written, and how many of runs that nobody
// waited for; who reads them finds no numbers.
size_t run(
    void (*kernel)(void**), const unsigned* grid, const unsigned* block, void** values, How how, size_t shared_bytes,
    bool backwards);

// Every other launch of a library goes through the blocks backwards, so that a kernel that depends on their order is
// found out.
static size_t launch(
    void (*kernel)(void**), const unsigned* grid, const unsigned* block, void** values, const How how,
    const size_t shared_bytes) {
    static bool backwards;
    backwards = !backwards;
    return run(kernel, grid, block, values, how, shared_bytes, backwards);
}

}  // namespace host
