// A column whose next AHEAD cells are copied to shared memory asynchronously, where they occupy no registers.
//
// Only open links are prefetched. Values of links that walls cut along y and z are loaded when the cell is updated.

//@begin constants
constexpr int AHEAD = 2;
//@end constants

//@begin copies
#include "../shared/copy_groups.cu"
//@end copies

// The cell beyond an end of a warp's part of a row; a copy moves at least four bytes.
constexpr int IN_END = sizeof(Stored) < 4 ? 4 / sizeof(Stored) : 1;
struct alignas(sizeof(Stored) < 4 ? 4 : sizeof(Stored)) End {
    Stored of[IN_END];
};

// Buffers of a population: the cells of each thread, and for each part of a row the cell beyond its end.
constexpr int THREADS = BLOCK_X * BLOCK_Y, ENDS = CELLS > 1 ? THREADS / SEGMENT : 0;
struct Waiting {
    Pack* cells;
    End* end;
};

//@begin taken
__device__ __forceinline__ void take_cells(Real (&f)[CELLS], const Pack& cells) { unpack(f, cells); }
__device__ __forceinline__ Real take_cell(const Stored& cell) { return widen(cell); }
//@end taken

// Returns the position of a value within the elements of one copy.
__device__ __forceinline__ int in_end(const Stored* place) {
    return reinterpret_cast<size_t>(place) / sizeof(Stored) % IN_END;
}

__device__ __forceinline__ void fetch_here(
    const Waiting& to, const Stored* slot, const Index row, const Lane& lane) {
    copy_later<sizeof(Pack)>(to.cells, slot + (row + lane.at));
}

__device__ __forceinline__ void fetch_moved(
    const Waiting& to, const Stored* slot, const Index row, const Lane& lane, const bool alone, const Stored* end) {
    if (CELLS == 1) {
        copy_later<sizeof(Pack)>(to.cells, end);
        return;
    }
    fetch_here(to, slot, row, lane);
    if (alone) copy_later<sizeof(End)>(to.end, end - in_end(end));
}

__device__ __forceinline__ void fetch_before(
    const Waiting& to, const Stored* slot, const Index row, const Lane& lane, const bool wall = false,
    const Stored* bounced = nullptr) {
    fetch_moved(to, slot, row, lane, lane.first || wall, wall ? bounced : slot + (row + lane.before));
}

__device__ __forceinline__ void fetch_after(
    const Waiting& to, const Stored* slot, const Index row, const Lane& lane, const bool wall = false,
    const Stored* bounced = nullptr) {
    fetch_moved(to, slot, row, lane, lane.last || wall, wall ? bounced : slot + (row + lane.after));
}

__device__ __forceinline__ void take_here(
    Real (&f)[CELLS], const Waiting& from, const Stored* slot, const Index row, const Lane& lane) {
    take_cells(f, *from.cells);
}

__device__ __forceinline__ void take_before(
    Real (&f)[CELLS], const Waiting& from, const Stored* slot, const Index row, const Lane& lane,
    const bool wall = false, const Stored* bounced = nullptr) {
    if (CELLS == 1) {
        take_cells(f, *from.cells);
        return;
    }
    const bool alone = lane.first || wall;
    Real own[CELLS], edge = 0;
    take_cells(own, *from.cells);
    if (alone) edge = take_cell(from.end->of[in_end(wall ? bounced : slot + (row + lane.before))]);
    const Real moved = from_lane(own[CELLS - 1], lane.previous, lane);
    f[0] = alone ? edge : moved;
#pragma unroll
    for (int v = 1; v < CELLS; ++v) f[v] = own[v - 1];
}

__device__ __forceinline__ void take_after(
    Real (&f)[CELLS], const Waiting& from, const Stored* slot, const Index row, const Lane& lane,
    const bool wall = false, const Stored* bounced = nullptr) {
    if (CELLS == 1) {
        take_cells(f, *from.cells);
        return;
    }
    const bool alone = lane.last || wall;
    Real own[CELLS], edge = 0;
    take_cells(own, *from.cells);
    if (alone) edge = take_cell(from.end->of[in_end(wall ? bounced : slot + (row + lane.after))]);
    const Real moved = from_lane(own[0], lane.next, lane);
    f[CELLS - 1] = alone ? edge : moved;
#pragma unroll
    for (int v = 0; v < CELLS - 1; ++v) f[v] = own[v + 1];
}

//@begin variants
//@begin buffers
    const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
    Pack* const cells = reinterpret_cast<Pack*>(shared) + thread;
    End* const ends = reinterpret_cast<End*>(reinterpret_cast<Pack*>(shared) + AHEAD * Q * THREADS) + thread / SEGMENT;
//@end buffers
//@begin loop
    Planes ahead = planes_at(first, nz, n), present = ahead;
    // the first rounds only copy, the last ones only update
#pragma unroll 1
    for (int round = first; round < end + AHEAD; ++round) {
        const int set = (round - first) % AHEAD;
        const auto waiting = [&](const int i) -> Waiting {
            return {cells + (set * Q + i) * THREADS, ends + (set * Q + i) * ENDS};
        };
        Real f[Q][CELLS];
        if (round >= first + AHEAD) {
            const int z = round - AHEAD;
            const Planes& planes = present;
            //@begin rows
            const Index row_oo = column_o + planes.level;
            //@end rows
            copies_left<AHEAD - 1>();
            //@begin take
            take_here(f[0], waiting(0), source + component(0, n), row_oo, lane);
            take_before(f[1], waiting(1), source + component(1, n), row_oo, lane);
            take_after(f[2], waiting(2), source + component(2, n), row_oo, lane);
            //@end take
        }
        if (round < end) {
            const int z = round;
            const Planes& planes = ahead;
            //@begin rows
            const Index row_oo = column_o + planes.level;
            //@end rows
            //@begin fetch
            fetch_here(waiting(0), source + component(0, n), row_oo, lane);
            fetch_before(waiting(1), source + component(1, n), row_oo, lane);
            fetch_after(waiting(2), source + component(2, n), row_oo, lane);
            //@end fetch
            ahead = planes_above(ahead, z + 1, nz, n);
        }
        copies_begin();  // one group per round, so that groups can be counted
        if (round >= first + AHEAD) {
            const int z = round - AHEAD;
            const Planes& planes = present;
            //@begin rows
            const Index row_oo = column_o + planes.level;
            //@end rows
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                //@begin call
                collide(f, v, omega);
                //@end call
            }
            //@begin write
            write_here(f[0], target + component(0, n), row_oo, lane);
            write_here(f[1], target + component(1, n), row_oo, lane);
            write_here(f[2], target + component(2, n), row_oo, lane);
            //@end write
            present = planes_above(present, z + 1, nz, n);
        }
    }
//@end loop
//@end variants
