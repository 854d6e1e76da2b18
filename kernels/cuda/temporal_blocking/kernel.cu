// Temporal blocking: STEPS time steps per launch. Thread blocks go up along z; halos are computed redundantly.
//
// A block has a tile of cells across x and y with a halo of STEPS cells, and goes up a chunk of planes, with STEPS more
// before and after it. A stage relaxes the values of one plane and streams them: along x by warp shuffles, along y
// through shared memory, along z by buffering until the next plane. This completes the plane below, which the next
// stage takes. Halo results are invalid and discarded. Cells hold moments or populations (MOMENTS values each). Entries
// whose links can be cut have further regions (walls.cu, entry_walls.cu).
//@begin title
//@end title

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of a buffer
constexpr int STEPS = 1;
constexpr int CELLS = 2, ROWS = 1, WARPS = 10;  // cells of a lane along x, rows of a thread, warps of a block
constexpr int PACK = 1;                         // values of a cell that lie together
constexpr int SECTOR = 8;                       // a tile is a multiple of this many cells along x
constexpr int PREFETCH = 1;                     // buffer of the next plane: 0 none, 1 registers, 2 shared memory
constexpr Real unit = 1;                        // density 1 as stored
constexpr int TOGETHER = 1;                     // planes per iteration of the loop
constexpr bool BEYOND = false;                  // whether one plane past the chunk is read, to save a tail branch
constexpr bool SHELVED = false;                 // whether values that move up are buffered in shared memory
constexpr bool WALLED_X = false;
constexpr int WIDTH = 60, BEFORE = 2;  // cells of a tile between walls; cells before the first tile
constexpr int MOMENTS = 10, LINES = 9, MOVERS = 5, ACROSS = 5, LEVEL = 9, CURRENT = 9, PENDING = 5;
//@end constants

//@begin storage
#include "../shared/storage_plain.cu"
//@end storage

constexpr int HALO = (STEPS + CELLS - 1) / CELLS * CELLS;  // cells of the halo along x: whole lanes

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

// SIZE stored values, moved by accesses of up to 16 bytes. Halves stay in pairs: unpacking them right after the load
// would wait for the prefetch.
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

// The stored values of the cells of a lane: groups of PACK, and the rest.
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

// Copies a value at once, or asynchronously.
template <class T>
__device__ __forceinline__ void copy(T* to, const T* from, const bool later) {
    if (later) {
        copy_later<sizeof(T)>(to, from);
    } else {
        *to = *from;
    }
}

// A row in shared memory, by groups: values that neighbouring lanes copy together are contiguous.
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

// Loads a row into registers or into its slots. pitch: elements from one group to the next.
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

// Hides that a value is the same in every plane. Otherwise the compiler precomputes its multiples and adds them in two
// instructions where one multiply-add would do. Used if an iteration takes several planes; with one plane, registers
// suffice for the multiples, and three steps are 3 % faster with them.
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

// Values of all threads of a block in shared memory: COUNT values of each thread, APART elements from one to the next.
// Floats are moved four at a time.
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

// Buffers of what the outer rows of a thread send along y. They extend past the first and the last row, so that a
// neighbour is at a constant distance; values read there are not used.
constexpr int LANES = 32 * CELLS * WARPS, NEXT = 32 * CELLS, RIM = NEXT * (whole(ACROSS) ? 4 : 1);
struct alignas(16) Sent {
    Real value[ACROSS * LANES];
};
struct Exchange {
    Real before[RIM];
    Sent up, down;
    Real after[RIM];
};

// Buffer of what moves up from a cell until the next plane (z_buffer=shared); it occupies no registers.
struct alignas(16) Shelf {
    Real value[PENDING * THREADS];
};
constexpr int SHELVES = SHELVED ? STEPS * ROWS * CELLS : 0;

// Streams along x: from cell to cell of a lane, and by shuffles from its outer cells to the neighbouring lanes.
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

// Exchange buffers: one per stage; a single stage alternates between two, so that one barrier per plane suffices.
constexpr int EXCHANGES = STEPS == 1 ? 2 : STEPS;
extern __shared__ uint4 shared[];

//@default walls
//@end walls

//@default warp_sync
//@end warp_sync

//@begin entry
#include "entry_3d.cu"
//@end entry
