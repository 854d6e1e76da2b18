//@begin title
// Lines between //@begin and //@end are an example (rest and +-x, two lattices, pull, periodic), so that this file
// compiles as it is. For a configuration, regions are printed from the tables of its scheme, layout, lattice and
// case, and the entry is printed once per parity of the scheme.
//@end title
// One time step of a propagation scheme on a box; every thread updates CELLS consecutive cells of a row.
//
// A population that moves by one cell along x is an aligned vector access of the thread plus one warp shuffle. Only
// the ends of a warp's part of a row load or store one more value. In both forms the same thread reads a value
// and writes its place, so schemes that work in place have no races. A vector load at such an end may read values of
// another thread; they are discarded.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of one component
constexpr int Q = 3;
constexpr int CELLS = 4;
constexpr int BLOCK_X = 64, BLOCK_Y = 1, BLOCK_Z = 1;
constexpr int ORIGIN_Y = 0, ORIGIN_Z = 0;  // storage coordinates of the first row
constexpr bool WRAPS = true;               // whether index arithmetic finds periodic rows along y and z, not ghost rows
constexpr Real unit = 1;                   // density 1 as stored
//@end constants

typedef unsigned long long Offset;  // elements of a whole buffer

//@begin storage
#include "storage_plain.cu"
//@end storage

struct Extents {
    Index x, y, z;
};

//@begin layout
__device__ __forceinline__ Extents storage_extents(const Index nx, const Index ny, const Index nz) {
    return {nx, ny, nz};
}
__device__ __forceinline__ Index along_x(const Index x, const Extents& n) { return x; }
__device__ __forceinline__ Index along_y(const Index y, const Extents& n) { return y * n.x; }
__device__ __forceinline__ Index along_z(const Index z, const Extents& n) { return z * (n.x * n.y); }
__device__ __forceinline__ Offset component(const Offset q, const Extents& n) { return q * (n.x * n.y * n.z); }
//@end layout

// Return storage coordinates along y or z: of row i, of the row before it, and of the row after it.
__device__ __forceinline__ Index here(const int i, const int origin) { return i + origin; }
__device__ __forceinline__ Index before(const int i, const int extent, const int origin) {
    return WRAPS && i == 0 ? extent - 1 : i - 1 + origin;
}
__device__ __forceinline__ Index after(const int i, const int extent, const int origin) {
    return WRAPS && i + 1 == extent ? 0 : i + 1 + origin;
}

// Threads of a warp that share a row.
constexpr int SEGMENT = BLOCK_X < 32 ? BLOCK_X : 32;

struct Lane {
    Index at, before, after;  // elements along x: first cell of the thread, cell before it, cell after its last
    int previous, next;       // lanes of the segment that hold those two cells
    bool first, last;         // whether another warp holds them
    unsigned active;          // lanes inside the domain
};

__device__ __forceinline__ Lane make_lane(const int x, const int nx, const Extents& n, const unsigned active) {
    const int lane = threadIdx.x % SEGMENT;
    const bool ring = nx <= CELLS * SEGMENT;  // the segment holds a whole row: its lanes form a ring
    const bool starts = lane == 0;
    const bool ends = lane == SEGMENT - 1 || x + CELLS == nx;
    Lane made;
    made.at = along_x(x, n);
    made.before = along_x(x == 0 ? nx - 1 : x - 1, n);
    made.after = along_x(x + CELLS == nx ? 0 : x + CELLS, n);
    made.previous = !starts ? lane - 1 : ring ? nx / CELLS - 1 : 0;
    made.next = !ends ? lane + 1 : ring ? 0 : lane;
    made.first = starts && !ring;
    made.last = ends && !ring;
    made.active = active;
    return made;
}

// Return the element of cell `number` along x; -1 and CELLS are the cells before and after those of the thread.
__device__ __forceinline__ Index element(const Lane& lane, const int number) {
    return number < 0 ? lane.before : number >= CELLS ? lane.after : lane.at + number;
}

__device__ __forceinline__ Real from_lane(const Real value, const int source, const Lane& lane) {
    return __shfl_sync(lane.active, value, source, SEGMENT);
}

__device__ __forceinline__ void read_here(Real (&f)[CELLS], const Stored* slot, const Index row, const Lane& lane) {
    if (CELLS == 1) {
        f[0] = widen(slot[row + lane.at]);
    } else {
        unpack(f, *reinterpret_cast<const Pack*>(slot + (row + lane.at)));
    }
}

// wall: whether a wall cuts the link at the end of the row; that value is then loaded from `bounced`.
__device__ __forceinline__ void read_before(
    Real (&f)[CELLS], const Stored* slot, const Index row, const Lane& lane, const bool wall = false,
    const Stored* bounced = nullptr) {
    const Stored* end = wall ? bounced : slot + (row + lane.before);
    if (CELLS == 1) {
        f[0] = widen(*end);
        return;
    }
    const bool alone = lane.first || wall;
    Real own[CELLS], edge = 0;
    read_here(own, slot, row, lane);
    if (alone) edge = widen(*end);
    const Real moved = from_lane(own[CELLS - 1], lane.previous, lane);
    f[0] = alone ? edge : moved;
#pragma unroll
    for (int v = 1; v < CELLS; ++v) f[v] = own[v - 1];
}

__device__ __forceinline__ void read_after(
    Real (&f)[CELLS], const Stored* slot, const Index row, const Lane& lane, const bool wall = false,
    const Stored* bounced = nullptr) {
    const Stored* end = wall ? bounced : slot + (row + lane.after);
    if (CELLS == 1) {
        f[0] = widen(*end);
        return;
    }
    const bool alone = lane.last || wall;
    Real own[CELLS], edge = 0;
    read_here(own, slot, row, lane);
    if (alone) edge = widen(*end);
    const Real moved = from_lane(own[0], lane.next, lane);
    f[CELLS - 1] = alone ? edge : moved;
#pragma unroll
    for (int v = 0; v < CELLS - 1; ++v) f[v] = own[v + 1];
}

// Loads cell by cell, `shift` cells along x; for rows along a wall only.
__device__ __forceinline__ void read_each(
    Real (&f)[CELLS], const Stored* slot, const Index row, const Lane& lane, const int shift) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen(slot[row + element(lane, v + shift)]);
}

__device__ __forceinline__ void write_here(const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane) {
    if (CELLS == 1) {
        slot[row + lane.at] = narrow(f[0]);
    } else {
        // the compiler may split an ordinary store
        const Pack packed = pack(f);
        Vector vector;
        memcpy(&vector, &packed, sizeof vector);
        __stwb(reinterpret_cast<Vector*>(slot + (row + lane.at)), vector);
    }
}

// Store all cells but the first, or all but the last, in parts of 1, 2 and 4 cells.
template <int SIZE>
__device__ __forceinline__ void write_tail(const Real (&f)[CELLS], Stored* place) {
    if constexpr (SIZE < CELLS) {
        write_part<SIZE>(f + SIZE, place + SIZE);
        write_tail<2 * SIZE>(f, place);
    }
}

template <int SIZE>
__device__ __forceinline__ void write_head(const Real (&f)[CELLS], Stored* place) {
    if constexpr (SIZE > 0) {
        write_part<SIZE>(f + (CELLS - 2 * SIZE), place + (CELLS - 2 * SIZE));
        write_head<SIZE / 2>(f, place);
    }
}

// Stores the cells whose link is open; the link of the first or of the last cell may be cut.
__device__ __forceinline__ void write_here_open(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const bool first, const bool last) {
    if (first && last) {
        write_here(f, slot, row, lane);
    } else if (CELLS > 1 && last) {
        write_tail<1>(f, slot + (row + lane.at));
    } else if (CELLS > 1 && first) {
        write_head<CELLS / 2>(f, slot + (row + lane.at));
    }
}

// open: whether the links of the row are open; arrives: whether the link of the previous thread's last cell is open.
// wall: whether a wall cuts the link at the end of the row; that value is then stored to `bounced`.
__device__ __forceinline__ void write_after(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const bool open = true,
    const bool arrives = true, const bool wall = false, Stored* bounced = nullptr) {
    Stored* end = wall ? bounced : slot + (row + lane.after);
    if (CELLS == 1) {
        if (open) *end = narrow(f[0]);
        return;
    }
    Real moved[CELLS];
    moved[0] = from_lane(f[CELLS - 1], lane.previous, lane);
#pragma unroll
    for (int v = 1; v < CELLS; ++v) moved[v] = f[v - 1];
    if (!open) return;
    if (!lane.first && arrives) {
        write_here(moved, slot, row, lane);
    } else {
        write_tail<1>(moved, slot + (row + lane.at));
    }
    if (lane.last || wall) *end = narrow(f[CELLS - 1]);
}

__device__ __forceinline__ void write_before(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const bool open = true,
    const bool arrives = true, const bool wall = false, Stored* bounced = nullptr) {
    Stored* end = wall ? bounced : slot + (row + lane.before);
    if (CELLS == 1) {
        if (open) *end = narrow(f[0]);
        return;
    }
    Real moved[CELLS];
    moved[CELLS - 1] = from_lane(f[0], lane.next, lane);
#pragma unroll
    for (int v = 0; v < CELLS - 1; ++v) moved[v] = f[v + 1];
    if (!open) return;
    if (!lane.last && arrives) {
        write_here(moved, slot, row, lane);
    } else {
        write_head<CELLS / 2>(moved, slot + (row + lane.at));
    }
    if (lane.first || wall) *end = narrow(f[0]);
}

__device__ __forceinline__ void write_each(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const int shift) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) slot[row + element(lane, v + shift)] = narrow(f[v]);
}

__device__ __forceinline__ void add(Real (&f)[CELLS], const Real gain) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] += gain;
}

//@begin collide
__device__ __forceinline__ void collide(Real (&f)[Q][CELLS], const int v, const Real omega) {
    const Real mean = (f[0][v] + f[1][v] + f[2][v]) / 3;
    for (int i = 0; i < Q; ++i) f[i][v] += omega * (mean - f[i][v]);
}
//@end collide

//@begin entry
#include "../direct/one_step.cu"
//@end entry
