// One time step of the moment representation in place: a block has a tile of cells, rebuilds their populations, and moves
// them within the tile; what crosses between tiles waits at their faces from one launch to the next.
//
//@begin title
//@end title
// A link between two tiles has two places. In a step each of its ends has one of them: there the cell finds what comes to
// it, and leaves what goes the other way; in the next step the two places are exchanged. So one copy of the moments and
// of what crosses is enough, and no place is touched by two threads in one launch.
// In shared memory a tile is closed to a torus: what leaves it makes room for what comes in.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements within one component
constexpr int CELLS = 1;     // of a thread
constexpr int BLOCK_X = 8, BLOCK_Y = 8, BLOCK_Z = 8;  // cells of a tile
constexpr int CROSSING = 960;                         // links of a tile to those after it, along all axes
constexpr bool WALL_LOW_X = false, WALL_LOW_Y = false, WALL_LOW_Z = false;
constexpr bool WALL_HIGH_X = false, WALL_HIGH_Y = false, WALL_HIGH_Z = false;
constexpr Real unit = 1;  // the density one, as stored
constexpr int MOMENTS = 10, LINES = 9, MOVERS = 5, ACROSS = 5, LEVEL = 9;
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

//@begin stage
__device__ __forceinline__ void relax(Real (&m)[MOMENTS], const Real omega) { m[1] *= 1 - omega; }
__device__ __forceinline__ void spread(
    const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS]) {}
__device__ __forceinline__ void sum_up(
    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], Real (&up)[ACROSS],
    Real (&down)[ACROSS], Real (&level)[LEVEL]) {}
__device__ __forceinline__ void total(
    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], Real (&m)[MOMENTS]) {}
//@end stage

//@begin copies
//@end copies

#ifdef __CUDACC__
// A number that the compiler knows nothing of: what follows from it is worked out where it is used, and takes no registers
// meanwhile.
__device__ __forceinline__ int anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}
#endif  // elsewhere the host provides it

// Something of a cell and of those before and after it along an axis.
struct Around {
    int before, here, after;
    __device__ __forceinline__ int at(const int step) const { return step < 0 ? before : step > 0 ? after : here; }
};

struct Along {
    bool inside;       // the domain
    bool first, last;  // of the tile
    bool low, high;    // whether there is a tile beyond, and no wall
    Around ring;       // cells of the tile, closed to a ring
    Around tile, cell; // in which tile, and where there
};

__device__ __forceinline__ Along take_seat(
    const int cell, const int tile, const int tiles, const int size, const int extent, const bool wall_low,
    const bool wall_high) {
    const int rest = extent - (tiles - 1) * size;  // cells of the last tile
    const int end = (tile + 1 == tiles ? rest : size) - 1;
    Along seat;
    seat.inside = cell <= end;
    seat.first = cell == 0;
    seat.last = cell == end;
    seat.low = seat.first && !(wall_low && tile == 0);
    seat.high = seat.last && !(wall_high && tile + 1 == tiles);
    seat.ring = {seat.first ? end : cell - 1, cell, seat.last ? 0 : cell + 1};
    const int before = tile == 0 ? tiles - 1 : tile - 1, after = tile + 1 == tiles ? 0 : tile + 1;
    seat.tile = {seat.first ? before : tile, tile, seat.last ? after : tile};
    seat.cell = {seat.first ? (tile == 0 ? rest : size) - 1 : cell - 1, cell, seat.last ? 0 : cell + 1};
    return seat;
}

struct Seat {
    Along x, y, z;
    __device__ __forceinline__ bool at_face() const { return x.low || x.high || y.low || y.high || z.low || z.high; }
};

__device__ __forceinline__ Seat take_seat(const int x, const int y, const int z, const int nx, const int ny, const int nz) {
    return {
        take_seat(x, blockIdx.x, gridDim.x, BLOCK_X, nx, WALL_LOW_X, WALL_HIGH_X),
        take_seat(y, blockIdx.y, gridDim.y, BLOCK_Y, ny, WALL_LOW_Y, WALL_HIGH_Y),
        take_seat(z, blockIdx.z, gridDim.z, BLOCK_Z, nz, WALL_LOW_Z, WALL_HIGH_Z)};
}

extern __shared__ uint4 shared[];

// Where a tile keeps what moves along link number k.
__device__ __forceinline__ Real* moving(const int k) {
    return reinterpret_cast<Real*>(shared) + k * (BLOCK_X * BLOCK_Y * BLOCK_Z);
}

__device__ __forceinline__ int own(const Seat& seat) {
    return (seat.z.ring.here * BLOCK_Y + seat.y.ring.here) * BLOCK_X + seat.x.ring.here;
}

// The cell of the torus that (CX, CY, CZ) comes from.
template <int CX, int CY, int CZ>
__device__ __forceinline__ int origin(const Seat& seat) {
    return (seat.z.ring.at(-CZ) * BLOCK_Y + seat.y.ring.at(-CY)) * BLOCK_X + seat.x.ring.at(-CX);
}

// Whether what goes with (CX, CY, CZ) stays in the tile.
template <int CX, int CY, int CZ>
__device__ __forceinline__ bool stays(const Seat& seat) {
    const bool x = CX > 0 ? seat.x.last : CX < 0 && seat.x.first;
    const bool y = CY > 0 ? seat.y.last : CY < 0 && seat.y.first;
    const bool z = CZ > 0 ? seat.z.last : CZ < 0 && seat.z.first;
    return !(x || y || z);
}

// Where the link lies by which (CX, CY, CZ) comes to a cell across a face of its tile: with the lower of its ends.
template <int AXIS, int CX, int CY, int CZ>
__device__ __forceinline__ Offset link(const Seat& seat) {
    constexpr bool RISES = (AXIS == 0 ? CX : AXIS == 1 ? CY : CZ) > 0;
    constexpr int X = RISES ? -CX : 0, Y = RISES ? -CY : 0, Z = RISES ? -CZ : 0;
    const int x = seat.x.cell.at(X), y = seat.y.cell.at(Y), z = seat.z.cell.at(Z);
    const int place = AXIS == 0 ? z * BLOCK_Y + y : AXIS == 1 ? z * BLOCK_X + x : y * BLOCK_X + x;
    const int row = seat.z.tile.at(Z) * gridDim.y + seat.y.tile.at(Y);
    return (static_cast<Offset>(row) * gridDim.x + seat.x.tile.at(X)) * CROSSING + place;
}

// Leaves at the faces of the tile what crosses them in the next step.
__device__ __forceinline__ void leave(
    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], Stored* rising, Stored* falling,
    const Seat& seat) {
    //@begin leave
    if (seat.y.low) {
        const Offset at_1 = link<1, 0, 1, 0>(seat);
        rising[at_1] = narrow(still[0]);
    }
    //@end leave
}

//@begin entry
// What a step finds at the faces is there at first, and where relaxation changes.
//@begin opening
extern "C" __global__ void __launch_bounds__(512) fill_faces(
    const Stored* moments, Stored* rising, Stored* falling, const int nx, const int ny, const int nz, const Real omega)
//@end opening
{
    const Seat seat = take_seat(threadIdx.x, threadIdx.y, threadIdx.z, nx, ny, nz);
    if (!(seat.x.inside && seat.y.inside && seat.z.inside)) return;
    const Extents n = storage_extents(nx, ny, nz);
    const Stored* const place = moments + (along_x(blockIdx.x * BLOCK_X + threadIdx.x, n) +
                                           along_y(blockIdx.y * BLOCK_Y + threadIdx.y, n) +
                                           along_z(blockIdx.z * BLOCK_Z + threadIdx.z, n));
    Real m[MOMENTS], still[LINES], right[MOVERS], left[MOVERS];
#pragma unroll
    for (int k = 0; k < MOMENTS; ++k) m[k] = widen(place[component(k, n)]);
    //@begin relax
    relax(m, omega);
    //@end relax
    spread(m, still, right, left);
    leave(still, right, left, rising, falling, seat);
}

//@begin signature
extern "C" __global__ void __launch_bounds__(512) step_0(
    Stored* moments, Stored* rising, Stored* falling, const int nx, const int ny, const int nz, const Real omega)
//@end signature
{
    const Extents n = storage_extents(nx, ny, nz);
    Stored* const place = moments + (along_x(blockIdx.x * BLOCK_X + threadIdx.x, n) +
                                     along_y(blockIdx.y * BLOCK_Y + threadIdx.y, n) +
                                     along_z(blockIdx.z * BLOCK_Z + threadIdx.z, n));
    Real m[MOMENTS], still[LINES], right[MOVERS], left[MOVERS];
    bool inside;
    {
        const Seat seat = take_seat(threadIdx.x, threadIdx.y, threadIdx.z, nx, ny, nz);
        inside = seat.x.inside && seat.y.inside && seat.z.inside;
        if (inside) {
#pragma unroll
            for (int k = 0; k < MOMENTS; ++k) m[k] = widen(place[component(k, n)]);
            //@begin arrive
            if (seat.y.low) {
                const Real in_1 = widen(rising[link<1, 0, 1, 0>(seat)]);
                moving(0)[origin<0, 1, 0>(seat)] = in_1;
            }
            //@end arrive
            //@begin relax
            relax(m, omega);
            //@end relax
            spread(m, still, right, left);
            const int here = own(seat);
            //@begin keep
            if (stays<0, 1, 0>(seat)) moving(0)[here] = still[0];
            //@end keep
            //@begin walls
            //@end walls
        }
    }
    //@begin meet
    __syncthreads();
    //@end meet
    if (!inside) return;

    const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), anew(threadIdx.z), nx, ny, nz);
    //@begin take
    still[0] = moving(0)[origin<0, 1, 0>(seat)];
    //@end take
    {
        Real up[ACROSS], down[ACROSS], level[LEVEL];
        sum_up(still, right, left, up, down, level);
        total(up, down, level, m);
    }
#pragma unroll
    for (int k = 0; k < MOMENTS; ++k) place[component(k, n)] = narrow(m[k]);
    if (!seat.at_face()) return;
    //@begin relax
    relax(m, omega);
    //@end relax
    spread(m, still, right, left);
    leave(still, right, left, rising, falling, seat);
}
//@end entry
