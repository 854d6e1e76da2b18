// Face exchange: one time step of moments in place. A block has a tile of cells, computes their populations and streams
// them within the tile; populations that cross tiles are kept at the faces from one launch to the next.
//@begin title
//@end title
// A link between two tiles has two places, one for each end in a step: the cell loads what arrives from it and stores
// what leaves the other way. The next step exchanges the two places. So one copy of the moments and of the faces
// suffices, and no place is accessed by two threads in one launch.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of one component
typedef unsigned int Place;  // elements of the arrays of faces
constexpr int Q = 3;
constexpr int CELLS = 1;                              // cells of a thread
constexpr int BLOCK_X = 8, BLOCK_Y = 8, BLOCK_Z = 8;  // cells of a tile
constexpr int CROSSING = 960;                         // links of a tile to the tiles after it, along all axes
constexpr int LISTS_Y = 320, LISTS_Z = 640;           // first links across y and z
constexpr bool WALL_LOW_X = false, WALL_LOW_Y = false, WALL_LOW_Z = false;
constexpr bool WALL_HIGH_X = false, WALL_HIGH_Y = false, WALL_HIGH_Z = false;
constexpr Real unit = 1;                              // density 1 as stored
constexpr int MOMENTS = 10, LINES = 9, MOVERS = 5, ACROSS = 5, LEVEL = 9;
//@end constants

typedef unsigned long long Offset;  // elements of a whole buffer
typedef unsigned int Word;          // word of a cell. Bit i: the link by which f_i arrives is cut

//@begin storage
#include "../shared/storage_plain.cu"
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

//@default copies
//@end copies

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

#ifdef __CUDACC__
// Hides a number from the compiler: what depends on it is recomputed where it is used, and occupies no registers.
__device__ __forceinline__ int anew(int number) {
    asm volatile("" : "+r"(number));
    return number;
}
// Prefetches a cache line into L2.
__device__ __forceinline__ void ask_for(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line) : "memory");
}
#endif  // the host provides these otherwise

// Position of a cell of a tile along an axis.
struct Seat {
    bool inside;          // whether the cell is in the domain
    bool first, last;     // whether the cell is the first, or the last, of the tile
    bool low, high;       // whether another tile, not a wall, lies beyond
    int end, before_end;  // last cell of the tile, and of the tile before it
    Place before, after;  // distances to the links of the neighbouring tiles
};

// step: tiles from one tile to the next.
__device__ __forceinline__ Seat take_seat(
    const int cell, const int tile, const int tiles, const Place step, const int size, const int extent,
    const bool wall_low, const bool wall_high) {
    const int rest = extent - (tiles - 1) * size;  // cells of the last tile
    Seat seat;
    seat.end = (tile + 1 == tiles ? rest : size) - 1;
    seat.before_end = (tile == 0 ? rest : size) - 1;
    seat.inside = cell <= seat.end;
    seat.first = cell == 0;
    seat.last = cell == seat.end;
    seat.low = seat.first && !(wall_low && tile == 0);
    seat.high = seat.last && !(wall_high && tile + 1 == tiles);
    seat.before = (tile == 0 ? Place(tiles - 1) : Place(0) - 1) * step * CROSSING;
    seat.after = (tile + 1 == tiles ? Place(0) - (tiles - 1) : Place(1)) * step * CROSSING;
    return seat;
}

struct Cell {
    int x, y, z;  // position in the tile
    Place tile;   // first link of the tile
    Seat along_x, along_y, along_z;
    __device__ __forceinline__ bool inside() const { return along_x.inside && along_y.inside && along_z.inside; }
    __device__ __forceinline__ bool at_face() const {
        return along_x.low || along_x.high || along_y.low || along_y.high || along_z.low || along_z.high;
    }
};

__device__ __forceinline__ Cell take_seats(const int x, const int y, const int z, const int nx, const int ny, const int nz) {
    const Place row = gridDim.x, plane = row * gridDim.y;
    return {
        x, y, z, (blockIdx.z * plane + blockIdx.y * row + blockIdx.x) * CROSSING,
        take_seat(x, blockIdx.x, gridDim.x, 1, BLOCK_X, nx, WALL_LOW_X, WALL_HIGH_X),
        take_seat(y, blockIdx.y, gridDim.y, row, BLOCK_Y, ny, WALL_LOW_Y, WALL_HIGH_Y),
        take_seat(z, blockIdx.z, gridDim.z, plane, BLOCK_Z, nz, WALL_LOW_Z, WALL_HIGH_Z)};
}

extern __shared__ uint4 shared[];

// Buffer of the populations of link k. Margins around all buffers receive the unused reads of cells at faces.
constexpr int TILE = BLOCK_X * BLOCK_Y * BLOCK_Z;
constexpr int REACH = (BLOCK_Z > 1 ? BLOCK_X * BLOCK_Y : 0) + BLOCK_X + 1;
__device__ __forceinline__ Real* moving(const int k) { return reinterpret_cast<Real*>(shared) + REACH + k * TILE; }

// Buffer of what is copied from the lower or the upper faces of the tile; a thread reads only what it copied.
__device__ __forceinline__ Real* waiting(const int side) { return moving(Q - 1) + REACH + side * CROSSING; }

// Distance from a cell to the cell that (CX, CY, CZ) leaves; at a face that is another cell, or none.
template <int CX, int CY, int CZ>
constexpr int BEHIND = -((CZ * BLOCK_Y + CY) * BLOCK_X + CX);

// Distance in a list, with APART links from cell to cell, between the links of a cell and of its neighbour at STEP.
template <int STEP, int APART>
__device__ __forceinline__ Place beside(const Seat& seat) {
    if (STEP < 0) return seat.first ? seat.before + Place(seat.before_end * APART) : Place(0) - APART;
    if (STEP > 0) return seat.last ? seat.after - Place(seat.end * APART) : Place(APART);
    return 0;
}

// Returns the position of a cell in the lists of a face.
template <int AXIS>
__device__ __forceinline__ int spot(const Cell& cell) {
    return AXIS == 0 ? cell.z * BLOCK_Y + cell.y : AXIS == 1 ? cell.z * BLOCK_X + cell.x : cell.y * BLOCK_X + cell.x;
}

// Returns the link by which (CX, CY, CZ) enters a cell through a face of its tile; it belongs to the lower of its ends.
template <int AXIS, int CX, int CY, int CZ>
__device__ __forceinline__ Place link(const Cell& cell) {
    constexpr bool RISES = (AXIS == 0 ? CX : AXIS == 1 ? CY : CZ) > 0;
    constexpr int X = RISES ? -CX : 0, Y = RISES ? -CY : 0, Z = RISES ? -CZ : 0;
    const Seat& across = AXIS == 0 ? cell.along_x : AXIS == 1 ? cell.along_y : cell.along_z;
    const Place own = cell.tile + spot<AXIS>(cell) + (RISES ? across.before : 0);
    if (AXIS == 0) return own + beside<Y, 1>(cell.along_y) + beside<Z, BLOCK_Y>(cell.along_z);
    if (AXIS == 1) return own + beside<X, 1>(cell.along_x) + beside<Z, BLOCK_X>(cell.along_z);
    return own + beside<X, 1>(cell.along_x) + beside<Y, BLOCK_X>(cell.along_y);
}

// A few threads prefetch into L2 what enters through the faces of the tile, except at the few edges.
__device__ __forceinline__ void ask_ahead(const Stored* rising, const Stored* falling, const int thread, const Cell& cell) {
    constexpr int LINE = 128 / sizeof(Stored);
    const int k = thread * LINE;
    if (k >= CROSSING) return;
    const Place before = k < LISTS_Y ? cell.along_x.before : k < LISTS_Z ? cell.along_y.before : cell.along_z.before;
    ask_for(falling + (cell.tile + k));
    ask_for(rising + Place(cell.tile + before + k));
}

// Stores at the faces of the tile what crosses them in the next step.
__device__ __forceinline__ void leave(
    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], Stored* rising, Stored* falling,
    const Cell& cell) {
    //@begin leave
    if (cell.along_y.low) {
        rising[link<1, 0, 1, 0>(cell)] = narrow(still[0]);
    }
    //@end leave
}

//@begin entry
// Fills the faces before the first step, and after the relaxation rate has changed.
//@begin opening
extern "C" __global__ void __launch_bounds__(512) fill_faces(
    const Stored* moments, Stored* rising, Stored* falling, const int nx, const int ny, const int nz, const Real omega)
{
//@end opening
    const Cell cell = take_seats(threadIdx.x, threadIdx.y, threadIdx.z, nx, ny, nz);
    if (!cell.inside() || !cell.at_face()) return;
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
    leave(still, right, left, rising, falling, cell);
}

//@begin signature
extern "C" __global__ void __launch_bounds__(512) step_0(
    Stored* moments, Stored* rising, Stored* falling, const int nx, const int ny, const int nz, const Real omega)
{
//@end signature
    const Extents n = storage_extents(nx, ny, nz);
    const int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y,
              z = blockIdx.z * BLOCK_Z + threadIdx.z;
    const int here = (threadIdx.z * BLOCK_Y + threadIdx.y) * BLOCK_X + threadIdx.x;
    const bool inside = x < nx && y < ny && z < nz;
    Stored* const place = moments + (along_x(x, n) + along_y(y, n) + along_z(z, n));
    Real m[MOMENTS], still[LINES], right[MOVERS], left[MOVERS];
    //@default ahead
    ask_ahead(rising, falling, here, take_seats(threadIdx.x, threadIdx.y, threadIdx.z, nx, ny, nz));
    //@end ahead
    if (inside) {
#pragma unroll
        for (int k = 0; k < MOMENTS; ++k) m[k] = widen(place[component(k, n)]);
        //@default ask
        //@end ask
        //@begin relax
        relax(m, omega);
        //@end relax
        spread(m, still, right, left);
        //@begin send
        moving(0)[here] = still[0];
        //@end send
    }
    __syncthreads();
    if (!inside) return;

    //@default seats
    const Cell cell = take_seats(anew(threadIdx.x), anew(threadIdx.y), anew(threadIdx.z), nx, ny, nz);
    //@end seats
    //@begin take
    still[0] = moving(0)[here + BEHIND<0, 1, 0>];
    //@end take
    //@default there
    //@end there
    //@begin arrive
    if (cell.along_y.low) still[0] = widen(rising[link<1, 0, 1, 0>(cell)]);
    //@end arrive
    //@begin walls
    //@end walls
    {
        Real up[ACROSS], down[ACROSS], level[LEVEL];
        sum_up(still, right, left, up, down, level);
        total(up, down, level, m);
    }
#pragma unroll
    for (int k = 0; k < MOMENTS; ++k) place[component(k, n)] = narrow(m[k]);
    if (!cell.at_face()) return;
    //@begin relax
    relax(m, omega);
    //@end relax
    spread(m, still, right, left);
    leave(still, right, left, rising, falling, cell);
}
//@end entry

// If what enters through faces is copied to shared memory (prefetch_to=shared).
//@begin prefetch
//@begin ahead
//@end ahead
//@begin ask
        {
            const Cell cell = take_seats(threadIdx.x, threadIdx.y, threadIdx.z, nx, ny, nz);
            //@begin copy
            //@end copy
            copies_begin();
        }
//@end ask
//@begin there
    copies_end();
//@end there
//@end prefetch
