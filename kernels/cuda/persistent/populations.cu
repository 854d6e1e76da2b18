// Persistent kernel of populations: any number of time steps in one launch, for domains that fit in shared memory.
//@begin title
//@end title
// A block keeps the populations of a tile in shared memory: BLOCK_X x BLOCK_Y x COLUMN cells, whole rows of the domain.
// A thread owns a column of the tile. As in the pull scheme, populations stay at the cell that they leave. Those that
// cross a face of the tile also go through global memory, in the two lattice copies in turn. All blocks are resident
// and synchronise once per step, with all others or with their neighbours. A thread reads its own tile before it waits.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of one component
constexpr int Q = 3;
constexpr int CELLS = 1;                 // cells of a vector
constexpr int BLOCK_X = 64, BLOCK_Y = 4; // cells of a row, rows of a plane of the tile
constexpr int COLUMN = 8;                // planes of the tile
constexpr Real unit = 1;                 // density 1 as stored
//@end constants

typedef unsigned long long Offset;  // elements of a whole buffer

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
__device__ __forceinline__ Index along_y(const Index y, const Extents& n) { return y * (n.x * Q); }
__device__ __forceinline__ Index along_z(const Index z, const Extents& n) { return z * (n.x * n.y * Q); }
__device__ __forceinline__ Offset component(const Offset q, const Extents& n) { return q * n.x; }
//@end layout

//@begin collide
__device__ __forceinline__ void collide(Real (&f)[Q][CELLS], const int v, const Real omega) {
    const Real mean = (f[0][v] + f[1][v] + f[2][v]) / 3;
    for (int i = 0; i < Q; ++i) f[i][v] += omega * (mean - f[i][v]);
}
//@end collide

//@begin barrier
#include "grid_barrier.cu"
//@end barrier

// Returns where population i of plane k of the tile begins.
__device__ __forceinline__ Stored* plane(const int i, const int k) {
    return reinterpret_cast<Stored*>(shared) + (i * COLUMN + k) * THREADS;
}

// Index parts of a coordinate, and of the coordinates before and after it.
struct Around {
    Index before, here, after;
    __device__ __forceinline__ Index at(const int step) const { return step < 0 ? before : step > 0 ? after : here; }
};

struct Seat {
    int x, y;           // position of the column in the tile
    bool first, last;   // whether the row is the first or the last one of the tile
    Around along, row;  // elements along x and y
    Index below, above; // along z, of the planes next to the tile
    int bottom;         // first plane of the tile
};

__device__ __forceinline__ Seat take_seat(const int x, const int y, const int ny, const int nz, const Extents& n) {
    const int line = blockIdx.y * BLOCK_Y + y, bottom = blockIdx.z * COLUMN, top = bottom + COLUMN;
    Seat seat;
    seat.x = x;
    seat.y = y;
    seat.first = y == 0;
    seat.last = y == BLOCK_Y - 1;
    seat.along = {along_x(x == 0 ? BLOCK_X - 1 : x - 1, n), along_x(x, n), along_x(x == BLOCK_X - 1 ? 0 : x + 1, n)};
    seat.row = {
        along_y(line == 0 ? ny - 1 : line - 1, n), along_y(line, n), along_y(line == ny - 1 ? 0 : line + 1, n)};
    seat.below = along_z(bottom == 0 ? nz - 1 : bottom - 1, n);
    seat.above = along_z(top == nz ? 0 : top, n);
    seat.bottom = bottom;
    return seat;
}

__device__ __forceinline__ Index elements(const Seat& seat, const int k, const Extents& n) {
    return k < 0 ? seat.below : k >= COLUMN ? seat.above : along_z(seat.bottom + k, n);
}

typedef Real Cells[COLUMN][Q][CELLS];

// Loads the population of velocity (CX, CY, CZ) from cells of the same tile.
template <int CX, int CY, int CZ>
__device__ __forceinline__ void take(Cells& f, const int i, const Seat& seat) {
    if (CY > 0 ? seat.first : CY < 0 && seat.last) return;
    const int x = CX > 0 ? (seat.x == 0 ? BLOCK_X - 1 : seat.x - 1)
                : CX < 0 ? (seat.x == BLOCK_X - 1 ? 0 : seat.x + 1) : seat.x;
    const int from = x + (seat.y - CY) * BLOCK_X;
#pragma unroll
    for (int k = 0; k < COLUMN; ++k) {
        if (k - CZ >= 0 && k - CZ < COLUMN) f[k][i][0] = widen(plane(i, k - CZ)[from]);
    }
}

// Loads what enters through a face of the tile.
template <int CX, int CY, int CZ>
__device__ __forceinline__ void receive(
    Cells& f, const int i, const Stored* faces, const Seat& seat, const Extents& n) {
    const bool crosses = CY > 0 ? seat.first : CY < 0 && seat.last;
    const Index row = seat.row.at(-CY) + seat.along.at(-CX);
#pragma unroll
    for (int k = 0; k < COLUMN; ++k) {
        if (k - CZ < 0 || k - CZ >= COLUMN || crosses) {
            f[k][i][0] = widen(__ldcg(faces + (row + elements(seat, k - CZ, n)) + component(i, n)));
        }
    }
}

// Half-way bounce-back: what the cell itself sent in the opposite direction.
__device__ __forceinline__ void back(Cells& f, const int i, const int opposite, const int k, const Seat& seat) {
    f[k][i][0] = widen(plane(opposite, k)[seat.y * BLOCK_X + seat.x]);
}

// Word of a cell. Bit i: the link by which f_i arrives is cut; all bits are set in solid cells.
typedef unsigned int Word;
__device__ __forceinline__ Word word_of(const Word* words, const int k, const Seat& seat, const int ny) {
    return words[((seat.bottom + k) * ny + blockIdx.y * BLOCK_Y + seat.y) * BLOCK_X + seat.x];
}

// Stores what leaves through a face of the tile.
template <int CX, int CY, int CZ>
__device__ __forceinline__ void send(
    const Cells& f, const int i, Stored* faces, const Seat& seat, const Extents& n) {
    const bool crosses = CY < 0 ? seat.first : CY > 0 && seat.last;
    const Index row = seat.row.here + seat.along.here;
#pragma unroll
    for (int k = 0; k < COLUMN; ++k) {
        if (k + CZ < 0 || k + CZ >= COLUMN || crosses) {
            (faces + (row + elements(seat, k, n)))[component(i, n)] = narrow(f[k][i][0]);
        }
    }
}

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(THREADS) step_0(
    Stored* source, Stored* target, unsigned* barrier, const int steps, const int nx, const int ny, const int nz,
    const Real omega)
{
//@end signature
    const Extents n = storage_extents(BLOCK_X, ny, nz);
    const int number = threadIdx.y * BLOCK_X + threadIdx.x;
    {
        const Seat seat = take_seat(threadIdx.x, threadIdx.y, ny, nz, n);
#pragma unroll
        for (int k = 0; k < COLUMN; ++k) {
            const Stored* const cell = source + (elements(seat, k, n) + seat.row.here + seat.along.here);
#pragma unroll
            for (int i = 0; i < Q; ++i) plane(i, k)[number] = cell[component(i, n)];
        }
    }
    //@begin begin
    const unsigned blocks = gridDim.y * gridDim.z;
    //@end begin
    __syncthreads();

    Cells f;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const Stored* const received = step % 2 ? target : source;
        Stored* const sent = step % 2 ? source : target;
        const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), ny, nz, n);
        //@begin take
        take<0, 0, 0>(f, 0, seat);
        take<0, 1, 0>(f, 1, seat);
        take<0, -1, 0>(f, 2, seat);
        //@end take
        //@begin wait
        if (number == 0 && step) wait_for(barrier, step * blocks);
        //@end wait
        __syncthreads();
        //@begin receive
        receive<0, 1, 0>(f, 1, received, seat, n);
        receive<0, -1, 0>(f, 2, received, seat, n);
        //@end receive
        //@begin walls
        //@end walls
#pragma unroll
        for (int k = 0; k < COLUMN; ++k) {
            //@begin call
            collide(f[k], 0, omega);
            //@end call
        }
        //@begin send
        send<0, 1, 0>(f, 1, sent, seat, n);
        send<0, -1, 0>(f, 2, sent, seat, n);
        //@end send
        //@begin early
        //@end early
        const int here = seat.y * BLOCK_X + seat.x;
#pragma unroll
        for (int k = 0; k < COLUMN; ++k) {
#pragma unroll
            for (int i = 0; i < Q; ++i) plane(i, k)[here] = narrow(f[k][i][0]);
        }
        __syncthreads();
        //@begin late
        if (number == 0 && step + 1 < steps) arrive(barrier);
        //@end late
    }

    Stored* const left = steps % 2 ? target : source;
    const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), ny, nz, n);
#pragma unroll
    for (int k = 0; k < COLUMN; ++k) {
        Stored* const cell = left + (elements(seat, k, n) + seat.row.here + seat.along.here);
#pragma unroll
        for (int i = 0; i < Q; ++i) cell[component(i, n)] = plane(i, k)[number];
    }
    //@begin go
    if (number == 0) go(barrier, blocks);
    //@end go
}
//@end entry
