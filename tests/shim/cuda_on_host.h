// Runs CUDA text as C++: the threads of a block are fibers of one CPU thread, blocks follow one another, or take turns
// where they have to run at once.
//
// Only what the kernels use: built-in variables, warp ballots and shuffles, vector types, half conversion.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

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

uint4 shared[15 << 10];  // of a block, as large as that of a device may be

// Never made one operation of two: a host without that instruction does not anyway.
inline double __dmul_rn(const double a, const double b) { return a * b; }
inline double __dadd_rn(const double a, const double b) { return a + b; }
inline double __dsub_rn(const double a, const double b) { return a - b; }

template <class T> T __ldcg(const T* place) { return *place; }
inline int anew(const int number) { return number; }
inline unsigned atomicInc(unsigned* place, const unsigned last) {
    const unsigned before = *place;
    *place = before >= last ? 0 : before + 1;
    return before;
}

template <class T> void __stwb(T* place, const T& value) { *place = value; }
template <class T> void fetch(T& to, const void* from) { std::memcpy(&to, from, sizeof to); }
template <class T> void leave(const T from, void* to) { std::memcpy(to, &from, sizeof from); }

namespace host {

struct Fiber {
    ucontext_t start;
    jmp_buf at;
    dim3 thread;
    unsigned number, barriers;
    bool begun, done;
};

// A copy that a thread has begun, and the group that it belongs to.
struct Copy {
    void* to;
    const void* from;
    int bytes;
    unsigned group;
};
struct Copies {
    std::vector<Copy> under_way;
    unsigned groups;
};

// What the lanes of a warp exchange. Two slots, so that a fast lane cannot overwrite what a slow one still reads.
struct Warp {
    char value[2][32][8];
    int rounds[32];  // operations that each lane has entered
    unsigned alive;
};

static const size_t STACK_BYTES = 1 << 16;
static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static std::vector<char> stacks;
static unsigned running;
static jmp_buf scheduler;
static ucontext_t back;
static void (*body)(void**);
static void** arguments;
static std::vector<Copies> copies;  // of each thread; of one where they follow one another
static bool backwards;  // of every other launch
static bool waits, passes;  // whether a thread of the running block has found others missing, or all there

static Fiber& me() { return fibers[running]; }
static Copies& my_copies() { return copies[copies.size() == 1 ? 0 : running]; }
static Warp& my_warp() { return warps[me().number / 32]; }
static unsigned my_lane() { return me().number % 32; }

static void yield() {
    if (!_setjmp(me().at)) _longjmp(scheduler, 1);
}

static void enter() {
    body(arguments);
    me().done = true;
    my_warp().alive &= ~(1u << my_lane());
    _longjmp(scheduler, 1);
}

// Hands in a value and waits for all lanes of the mask that still run; returns the round's values.
static char (&exchange(const unsigned mask, const void* value, const size_t bytes))[32][8] {
    Warp& warp = my_warp();
    if (!(mask >> my_lane() & 1) || bytes > 8) abort();
    const int round = ++warp.rounds[my_lane()];
    std::memcpy(warp.value[round & 1][my_lane()], value, bytes);
    for (unsigned lane = 0; lane < 32; ++lane) {
        while ((mask & warp.alive) >> lane & 1 && warp.rounds[lane] < round) yield();
    }
    return warp.value[round & 1];
}

}  // namespace host

// Copied at once in one launch, and in the next one no sooner than somebody waits for it.
template <int BYTES> void copy_later(void* to, const void* from) {
    if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from)) % (BYTES < 16 ? BYTES : 16)) abort();
    if (host::backwards) {
        std::memcpy(to, from, BYTES);
    } else {
        host::my_copies().under_way.push_back({to, from, BYTES, host::my_copies().groups});
    }
}
inline void copies_begin() { ++host::my_copies().groups; }
template <int LEFT> void copies_left() {
    std::vector<host::Copy> later;
    for (const host::Copy& copy : host::my_copies().under_way) {
        if (copy.group + LEFT < host::my_copies().groups) {
            std::memcpy(copy.to, copy.from, copy.bytes);
        } else {
            later.push_back(copy);
        }
    }
    host::my_copies().under_way = later;
}
inline void copies_end() { copies_left<0>(); }

static dim3 threadIdx, blockIdx, gridDim;
namespace host {
static unsigned number;  // of the block, in the order of the grid
}

// Waits until every thread of the block that still runs has come as often.
inline void __syncthreads() {
    const unsigned mine = ++host::me().barriers;
    for (const host::Fiber& other : host::fibers) {
        while (!other.done && other.barriers < mine) host::yield();
    }
}

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

inline unsigned __ballot_sync(const unsigned mask, const bool vote) {
    const unsigned alive = mask & host::my_warp().alive;
    auto& votes = host::exchange(mask, &vote, sizeof vote);
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (alive >> lane & 1 && votes[lane][0]) result |= 1u << lane;
    }
    return result;
}

inline bool __any_sync(const unsigned mask, const bool vote) { return __ballot_sync(mask, vote); }
inline void __syncwarp() { __ballot_sync(0xffffffffu, true); }

inline void meet_block() { __syncthreads(); }

// Of flags that warps raise for one another: how often.
inline void make(unsigned long long* flag) { *flag = 0; }
inline void raise(unsigned long long* flag) { ++*flag; }
inline bool raised(const unsigned long long* flag, const unsigned parity) {
    if (*flag % 2 == parity) host::yield();
    return *flag % 2 != parity;
}

template <class T> T __shfl_sync(const unsigned mask, const T value, const int source, const int width) {
    const unsigned lane = host::my_lane() / width * width + static_cast<unsigned>(source) % width;
    if (!(mask >> lane & 1)) abort();  // undefined on a device
    auto& values = host::exchange(mask, &value, sizeof value);
    T found;
    std::memcpy(&found, values[lane], sizeof found);
    return found;
}

inline unsigned __float_as_uint(const float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float __uint_as_float(const unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline float half_to_float(const unsigned short half) {
    const unsigned sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
    float magnitude;
    const unsigned bits = rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : rest << 13;
    std::memcpy(&magnitude, &bits, 4);
    if (rest < 0x7c00u) magnitude *= 0x1p112f;
    unsigned result;
    std::memcpy(&result, &magnitude, 4);
    result |= sign;
    std::memcpy(&magnitude, &result, 4);
    return magnitude;
}

// To nearest, ties to even.
inline unsigned short float_to_half(const float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    const unsigned sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7fffu;
    if (rest >= 0x477ff000u) return sign | 0x7c00u;
    if (rest < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
        float magnitude;
        std::memcpy(&magnitude, &rest, 4);
        magnitude += 0.5f;
        unsigned sum;
        std::memcpy(&sum, &magnitude, 4);
        return sign | (sum - 0x3f000000u);
    }
    return sign | (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
}

inline unsigned floats_to_halves(const float low, const float high) {
    return float_to_half(low) | static_cast<unsigned>(float_to_half(high)) << 16;
}

namespace host {

// Makes the threads of a block ready to run on stacks of their own.
static void line_up(const dim3 block, char* stacks) {
    const unsigned threads = block.x * block.y * block.z;
    fibers.resize(threads);
    copies.assign(threads, Copies());
    warps.assign((threads + 31) / 32, Warp());
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = fibers[t];
        fiber.thread = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
        fiber.number = t;
        fiber.begun = fiber.done = false;
        fiber.barriers = 0;
        warps[t / 32].alive |= 1u << t % 32;
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = stacks + t * STACK_BYTES;
        fiber.start.uc_stack.ss_size = STACK_BYTES;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, enter, 0);
    }
}

// Runs each thread of the block until it waits for others. Returns whether any is left.
static bool run_once() {
    volatile bool left = false;
    for (running = 0; running < fibers.size(); ++running) {
        Fiber& fiber = me();
        if (fiber.done) continue;
        left = true;
        threadIdx = fiber.thread;
        if (_setjmp(scheduler)) continue;
        if (fiber.begun) _longjmp(fiber.at, 1);
        fiber.begun = true;
        swapcontext(&back, &fiber.start);
    }
    return left;
}

static void run_block_as_fibers(const dim3 block) {
    stacks.resize(block.x * block.y * block.z * STACK_BYTES);
    line_up(block, stacks.data());
    while (run_once()) {
    }
}

static void run_block_as_loop(const dim3 block) {
    copies.assign(1, Copies());
    for (threadIdx.z = 0; threadIdx.z < block.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < block.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) body(arguments);
}

static void place_block(const unsigned n) {
    number = n;
    blockIdx = {n % gridDim.x, n / gridDim.x % gridDim.y, n / (gridDim.x * gridDim.y)};
}

struct Block {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<char> shared;
    bool left;
};

// Each block runs until it waits for the others, and leaves its shared memory to the next one meanwhile.
static void run_blocks_together(const std::vector<unsigned>& order, const dim3 threads, const size_t shared_bytes) {
    const size_t stack_bytes = threads.x * threads.y * threads.z * STACK_BYTES;
    stacks.resize(order.size() * stack_bytes);
    std::vector<Block> blocks(order.size());
    const char* const untouched = reinterpret_cast<char*>(shared);
    for (size_t n = 0; n < order.size(); ++n) {
        line_up(threads, stacks.data() + n * stack_bytes);
        blocks[n] = {fibers, warps, std::vector<char>(untouched, untouched + shared_bytes), true};
    }
    for (bool any = true, moved = true; any;) {
        if (!moved) abort();  // all wait for ever
        any = moved = false;
        for (size_t n = 0; n < order.size(); ++n) {
            Block& block = blocks[n];
            if (!block.left) continue;
            place_block(order[n]);
            fibers.swap(block.fibers);
            warps.swap(block.warps);
            std::memcpy(shared, block.shared.data(), shared_bytes);
            for (waits = passes = false; block.left && !waits; moved = moved || passes || !waits) block.left = run_once();
            std::memcpy(block.shared.data(), shared, shared_bytes);
            fibers.swap(block.fibers);
            warps.swap(block.warps);
            any = any || block.left;
        }
    }
}

enum How { as_loop, as_fibers, together };

// as_fibers: the threads of a block talk to one another; together: blocks do, too. Every other launch goes through the
// blocks backwards, so that a kernel that depends on their order is found out. Returns how many bytes of shared memory
// behind the given ones were written; who reads them finds no numbers.
static size_t launch(
    void (*kernel)(void**), const unsigned* grid, const unsigned* block, void** values, const How how,
    const size_t shared_bytes) {
    body = kernel;
    arguments = values;
    const dim3 threads = {block[0], block[1], block[2]};
    gridDim = {grid[0], grid[1], grid[2]};
    backwards = !backwards;
    const unsigned blocks = grid[0] * grid[1] * grid[2];
    std::vector<unsigned> order;
    for (unsigned n = 0; n < blocks; ++n) order.push_back(backwards ? blocks - 1 - n : n);
    std::memset(shared, 0xff, sizeof shared);
    if (how == together) run_blocks_together(order, threads, shared_bytes);
    for (const unsigned n : order) {
        if (how == together) break;
        place_block(n);
        how == as_fibers ? run_block_as_fibers(threads) : run_block_as_loop(threads);
    }
    size_t strayed = 0;
    for (size_t k = shared_bytes; k < sizeof shared; ++k) strayed += reinterpret_cast<unsigned char*>(shared)[k] != 0xff;
    return strayed;
}

}  // namespace host
