// STEPS time steps of the moment representation in one launch: blocks march along z, halos are computed twice.
//
// A block has a tile of cells across x and y, with a halo of STEPS cells, and goes up a chunk of planes, with STEPS more
// before and after. A stage takes the moments of one plane, relaxes them, and moves what each direction carries: along x
// to the neighbouring lane, along y through shared memory, along z by waiting for the next plane. It so finishes the
// plane before, which is what the next stage takes. Halo cells come to nonsense, which is never stored. What is between
// links and returned is there where links can be cut (march_walls.cu).
//
//@begin title
//@end title

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of a buffer
constexpr int STEPS = 1;
constexpr int CELLS = 2, ROWS = 1, WARPS = 10;  // cells of a lane along x, rows of a thread along y, warps of a block
constexpr int PACK = 1;                         // moments of a cell that lie together
constexpr int SECTOR = 8;                       // cells that a tile is a multiple of
constexpr int PREFETCH = 1;                     // where the next plane waits: 0 nowhere, 1 registers, 2 shared memory
constexpr Real unit = 1;                        // the density one, as stored
constexpr int TOGETHER = 1;                     // planes that one pass of the loop takes
constexpr bool BEYOND = false;                  // whether a plane more is read ahead than there are
constexpr bool SHELVED = false;                 // whether what goes up waits in shared memory
constexpr bool WALLED_X = false;
constexpr int WIDTH = 60, BEFORE = 2;  // cells that a tile between walls finishes; those before the first one's halo ends
constexpr int MOMENTS = 10, LINES = 9, MOVERS = 5, ACROSS = 5, LEVEL = 9, CURRENT = 9, PENDING = 5;
//@end constants

//@begin storage
#include "../shared/storage_plain.cu"
//@end storage

constexpr int HALO = (STEPS + CELLS - 1) / CELLS * CELLS;  // cells of a tile's rim along x: whole lanes

struct Extents {
    Index x, y, z;
};

//@begin layout
__device__ __forceinline__ Extents storage_extents(const Index nx, const Index ny, const Index nz) {
    return {nx, ny, nz};
}
__device__ __forceinline__ Index along_y(const Index y, const Extents& n) { return y * (n.x * MOMENTS); }
__device__ __forceinline__ Index along_z(const Index z, const Extents& n) { return z * (n.x * n.y * MOMENTS); }
__device__ __forceinline__ Index component(const Index first, const Extents& n) { return first * n.x; }
//@end layout

//@begin stage
__device__ __forceinline__ void relax(Real (&m)[MOMENTS], const Real omega) { m[1] *= 1 - omega; }
__device__ __forceinline__ void spread(
    const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS]) {}
__device__ __forceinline__ void sum_up(
    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], Real (&up)[ACROSS],
    Real (&down)[ACROSS], Real (&level)[LEVEL]) {}
__device__ __forceinline__ void gather(
    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], Real (&current)[CURRENT],
    Real (&pending)[PENDING], Real (&m)[MOMENTS]) {}
//@end stage

// SIZE stored values, moved 16 bytes at a time at most. Halves stay in pairs: a compiler that takes them apart as soon as
// they are loaded waits for what was asked for ahead.
constexpr int alignment(const int bytes) { return bytes < 16 ? bytes : 16; }
template <int SIZE, bool PAIRED = sizeof(Stored) == 2 && SIZE % 2 == 0>
struct alignas(alignment(SIZE * sizeof(Stored))) Words {
    Stored value[SIZE];
    __device__ __forceinline__ Stored operator[](const int k) const { return value[k]; }
};
template <int SIZE>
struct alignas(alignment(SIZE * sizeof(Stored))) Words<SIZE, true> {
    unsigned pair[SIZE / 2];
    __device__ __forceinline__ Stored operator[](const int k) const {
        return static_cast<Stored>(pair[k / 2] >> (k % 2 ? 16 : 0));
    }
};

// The stored moments of the cells of a lane: groups of PACK, and what is left over.
constexpr int GROUPS = MOMENTS / PACK, REST = MOMENTS % PACK ? MOMENTS % PACK : 1;
constexpr bool LEFT_OVER = MOMENTS % PACK;
typedef Words<PACK * CELLS> Group;
typedef Words<REST * CELLS> Rest;
struct Cells {
    Group group[GROUPS];
    Rest rest;
};

//@begin copies
#include "../shared/async_copies.cu"
//@end copies

// A place of one size in memory, copied at once or later.
template <class T>
__device__ __forceinline__ void copy(T* to, const T* from, const bool later) {
    if (later) {
        copy_later<sizeof(T)>(to, from);
    } else {
        *to = *from;
    }
}

// Places of the groups of a row in shared memory: what neighbouring lanes copy at once lies side by side.
constexpr int THREADS = 32 * WARPS;
//@default slots
constexpr int SLOTS = (GROUPS * sizeof(Group) + LEFT_OVER * sizeof(Rest)) * THREADS;  // bytes of a row
struct Slots {
    Group* group;
    Rest* rest;
};
__device__ __forceinline__ Slots slots_of(void* memory, const int r) {
    char* const row = static_cast<char*>(memory) + r * SLOTS;
    const int thread = threadIdx.y * 32 + threadIdx.x;
    return {reinterpret_cast<Group*>(row) + thread, reinterpret_cast<Rest*>(row + GROUPS * sizeof(Group) * THREADS) + thread};
}

// Reads a row into registers, or into its slots; pitch: elements from a group to the next one.
__device__ __forceinline__ void fetch_cells(
    Cells& cells, const Slots& slots, const Stored* row, const Index pitch, const int x) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        const Group* const place = reinterpret_cast<const Group*>(row + static_cast<unsigned long long>(pitch) * g);
        copy(PREFETCH == 2 ? slots.group + g * THREADS : &cells.group[g], place, PREFETCH == 2);
    }
    if (LEFT_OVER) {
        const Stored* const last = row + static_cast<unsigned long long>(pitch) * GROUPS - x * (PACK - REST);
        copy(PREFETCH == 2 ? slots.rest : &cells.rest, reinterpret_cast<const Rest*>(last), PREFETCH == 2);
    }
}

__device__ __forceinline__ void take_cells(Cells& cells, const Slots& slots) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) cells.group[g] = slots.group[g * THREADS];
    if (LEFT_OVER) cells.rest = *slots.rest;
}
//@end slots

__device__ __forceinline__ void widen_cells(Real (&m)[CELLS][MOMENTS], const Cells& cells) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
#pragma unroll
        for (int k = 0; k < GROUPS * PACK; ++k) m[v][k] = widen(cells.group[k / PACK][v * PACK + k % PACK]);
#pragma unroll
        for (int k = 0; LEFT_OVER && k < REST; ++k) m[v][GROUPS * PACK + k] = widen(cells.rest[v * REST + k]);
    }
}

__device__ __forceinline__ void store_cells(
    const Real (&m)[CELLS][MOMENTS], Stored* row, const Index pitch, const int x) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        Real values[PACK * CELLS];
#pragma unroll
        for (int k = 0; k < PACK * CELLS; ++k) values[k] = m[k / PACK][g * PACK + k % PACK];
        write_part<PACK * CELLS>(values, row + static_cast<unsigned long long>(pitch) * g);
    }
    if (LEFT_OVER) {
        Real values[REST * CELLS];
#pragma unroll
        for (int k = 0; k < REST * CELLS; ++k) values[k] = m[k / REST][MOMENTS - REST + k % REST];
        write_part<REST * CELLS>(
            values, row + static_cast<unsigned long long>(pitch) * GROUPS - x * (PACK - REST));
    }
}

// A compiler that knows a value to be the same in every plane works out its multiples beforehand, and adds each of them to
// a row in two instructions; one that does not multiplies and adds in one. It pays where a pass takes several planes:
// with one alone the registers that such multiples take are there, and three steps are 3 % faster with them.
__device__ __forceinline__ void forget(unsigned int& value) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(value));
#endif
}
__device__ __forceinline__ void forget(int& value) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(value));
#endif
}
__device__ __forceinline__ void forget(unsigned long long& value) {
#ifdef __CUDACC__
    asm volatile("" : "+l"(value));
#endif
}

// Values of all threads of a block in shared memory, of each thread COUNT values that are APART: four at a time as far as
// they go where they are floats.
struct alignas(16) Four {
    Real value[4];
};
constexpr int whole(const int count) { return sizeof(Real) == 4 ? count / 4 * 4 : 0; }

template <int APART, int COUNT>
__device__ __forceinline__ void put(Real* to, const Real (&values)[COUNT], const int place) {
#pragma unroll
    for (int k = 0; k < whole(COUNT); k += 4) {
        reinterpret_cast<Four*>(to + k * APART)[place] = {{values[k], values[k + 1], values[k + 2], values[k + 3]}};
    }
#pragma unroll
    for (int k = whole(COUNT); k < COUNT; ++k) to[k * APART + place] = values[k];
}

template <int APART, int COUNT>
__device__ __forceinline__ void take(Real (&values)[COUNT], const Real* from, const int place) {
#pragma unroll
    for (int k = 0; k < whole(COUNT); k += 4) {
        const Four four = reinterpret_cast<const Four*>(from + k * APART)[place];
#pragma unroll
        for (int j = 0; j < 4; ++j) values[k + j] = four.value[j];
    }
#pragma unroll
    for (int k = whole(COUNT); k < COUNT; ++k) values[k] = from[k * APART + place];
}

// What the rows at the rim of a thread hand on along y. The first and the last row find something beyond, too, though
// nothing that anybody needs: so a neighbour's place is a constant away from one's own.
constexpr int LANES = 32 * CELLS * WARPS, NEXT = 32 * CELLS, RIM = NEXT * (whole(ACROSS) ? 4 : 1);
struct alignas(16) Sent {
    Real value[ACROSS * LANES];
};
struct Exchange {
    Real before[RIM];
    Sent up, down;
    Real after[RIM];
};

// What goes up from a cell of each thread and waits for the next plane: on a shelf it takes no registers meanwhile.
struct alignas(16) Shelf {
    Real value[PENDING * THREADS];
};
constexpr int SHELVES = SHELVED ? STEPS * ROWS * CELLS : 0;

// What goes along x: from cell to cell of a lane, and from its last ones to the neighbouring lanes.
__device__ __forceinline__ void hand_across(Real (&right)[CELLS][MOVERS], Real (&left)[CELLS][MOVERS], const int lane) {
#pragma unroll
    for (int k = 0; k < MOVERS; ++k) {
        const Real from_left = __shfl_sync(0xffffffffu, right[CELLS - 1][k], (lane + 31) % 32, 32);
        const Real from_right = __shfl_sync(0xffffffffu, left[0][k], (lane + 1) % 32, 32);
#pragma unroll
        for (int v = CELLS - 1; v > 0; --v) right[v][k] = right[v - 1][k];
#pragma unroll
        for (int v = 0; v < CELLS - 1; ++v) left[v][k] = left[v + 1][k];
        right[0][k] = from_left;
        left[CELLS - 1][k] = from_right;
    }
}

__device__ __forceinline__ int wrapped(int i, const int extent) {
    while (i < 0) i += extent;
    while (i >= extent) i -= extent;
    return i;
}

__device__ __forceinline__ int least(const int a, const int b) { return a < b ? a : b; }

// Buffers of the exchange: one per stage; where that is one alone, two in turn, so that one barrier is enough.
constexpr int EXCHANGES = STEPS == 1 ? 2 : STEPS;
extern __shared__ uint4 shared[];

//@default walls
//@end walls

//@default warp_sync
//@end warp_sync

//@begin entry
#include "entry_3d.cu"
//@end entry
