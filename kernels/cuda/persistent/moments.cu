// Persistent kernel of moments: any number of time steps in one launch, for domains whose moments fit on chip.
//@begin title
//@end title
// A block keeps the moments of a tile of whole rows: some planes in registers, the others in shared memory. In each
// step it goes up the planes of the tile, without a halo: a row is a ring of lanes along x, threads send sums along y
// through shared memory, and buffer them along z until the next plane. Sums also cross tiles, through global memory.
// Moments are linear in these sums, so sums of other tiles are added when the next step loads the moments. Blocks
// synchronise once per step, and nothing is computed redundantly.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of one component
constexpr int CELLS = 1;                              // cells of a vector in memory
constexpr int BLOCK_X = 32, BLOCK_Y = 8;              // lanes of a row; threads along y
constexpr int WIDE = 2, ROWS = 1, COLUMN = 4;         // cells of a thread along x, its rows, planes of the tile
constexpr bool HOLDS = false;                         // whether registers keep the moments of some planes
constexpr int TOGETHER = 1;                           // planes per pass of the loop
constexpr bool FLAT = false;                          // two dimensions: the tiles of a block lie one above the other
constexpr Real unit = 1;                              // density 1 as stored
constexpr int MOMENTS = 10, LINES = 9, MOVERS = 5, ACROSS = 5, LEVEL = 9, CURRENT = 9, PENDING = 5;
// c_z of a sum that is sent along y.
__device__ __forceinline__ constexpr int way(const int sum) { return sum < 1 ? -1 : sum < 4 ? 0 : 1; }
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
__device__ __forceinline__ Index along_y(const Index y, const Extents& n) { return y * (n.x * MOMENTS); }
__device__ __forceinline__ Index along_z(const Index z, const Extents& n) { return z * (n.x * n.y * MOMENTS); }
__device__ __forceinline__ Offset component(const Offset q, const Extents& n) { return q * n.x; }
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
__device__ __forceinline__ void enter_up(Real (&m)[MOMENTS], const Real (&sums)[ACROSS]) {}
__device__ __forceinline__ void enter_down(Real (&m)[MOMENTS], const Real (&sums)[ACROSS]) {}
__device__ __forceinline__ void rise(Real (&m)[MOMENTS], const Real (&sums)[PENDING]) {}
__device__ __forceinline__ void fall(Real (&m)[MOMENTS], const Real (&sums)[PENDING]) {}
__device__ __forceinline__ void fallen(const Real (&m)[MOMENTS], Real (&sums)[PENDING]) {}
__device__ __forceinline__ void finish(Real (&m)[MOMENTS], const Real (&current)[CURRENT]) {}
//@end stage

//@begin barrier
#include "grid_barrier.cu"
//@end barrier

constexpr int LANES = BLOCK_X, SEATS = BLOCK_Y;

// Values of a cell form pieces as large as an access may be; equal pieces of all cells are contiguous.
constexpr int piece(const int bytes, const int values) {
    int size = 1;
    while (2 * size <= values && 2 * size * bytes <= 16) size *= 2;
    return size;
}
template <class Value, int SIZE, bool PAIRED = sizeof(Value) == 2 && SIZE % 2 == 0>
struct alignas(SIZE * sizeof(Value)) Piece {
    Value value[SIZE];
    __device__ __forceinline__ Value operator[](const int k) const { return value[k]; }
};
template <class Value, int SIZE>
struct alignas(SIZE * sizeof(Value)) Piece<Value, SIZE, true> {
    unsigned pair[SIZE / 2];
    __device__ __forceinline__ Value operator[](const int k) const {
        return static_cast<Value>(pair[k / 2] >> (k % 2 ? 16 : 0));
    }
};

// Store and load the moments of a cell, in buffers of COUNT cells.
template <int COUNT, int FIRST = 0>
__device__ __forceinline__ void keep(Stored* to, const int place, const Real (&m)[MOMENTS]) {
    constexpr int SIZE = piece(sizeof(Stored), MOMENTS - FIRST);
    write_part<SIZE>(&m[FIRST], to + FIRST * COUNT + place * SIZE);
    if constexpr (FIRST + SIZE < MOMENTS) keep<COUNT, FIRST + SIZE>(to, place, m);
}
template <int COUNT, int FIRST = 0>
__device__ __forceinline__ void take_up(Real (&m)[MOMENTS], const Stored* from, const int place) {
    constexpr int SIZE = piece(sizeof(Stored), MOMENTS - FIRST);
    const auto found = *reinterpret_cast<const Piece<Stored, SIZE>*>(from + FIRST * COUNT + place * SIZE);
#pragma unroll
    for (int k = 0; k < SIZE; ++k) m[FIRST + k] = widen(found[k]);
    if constexpr (FIRST + SIZE < MOMENTS) take_up<COUNT, FIRST + SIZE>(m, from, place);
}

constexpr int WIDTH = LANES * WIDE;
constexpr int PLANE = THREADS * WIDE * ROWS;                     // cells of a plane of the tile
constexpr int SENT = 2 * ACROSS;                                 // values that a thread sends along y, per cell
constexpr int WHOLE = ACROSS / piece(sizeof(Real), ACROSS) * piece(sizeof(Real), ACROSS);
// If sizes match, a plane's sums replace its moments, which have been loaded; otherwise they have buffers of their own.
constexpr bool IN_PLACE = SENT == MOMENTS && sizeof(Stored) == sizeof(Real);
constexpr int ROOM = IN_PLACE ? PLANE : THREADS * WIDE;          // cells of a buffer of sums

// Order of the sums that a thread sends: whole pieces up, whole pieces down, then the rest.
__device__ __forceinline__ constexpr int sent_up(const int sum) { return sum < WHOLE ? sum : WHOLE + sum; }
__device__ __forceinline__ constexpr int sent_down(const int sum) { return sum < WHOLE ? WHOLE + sum : ACROSS + sum; }

template <int FIRST = 0>
__device__ __forceinline__ void hand_on(Real* to, const int place, const Real (&sums)[SENT]) {
    constexpr int SIZE = piece(sizeof(Real), SENT - FIRST);
    Piece<Real, SIZE> found;
#pragma unroll
    for (int k = 0; k < SIZE; ++k) found.value[k] = sums[FIRST + k];
    *reinterpret_cast<Piece<Real, SIZE>*>(to + FIRST * ROOM + place * SIZE) = found;
    if constexpr (FIRST + SIZE < SENT) hand_on<FIRST + SIZE>(to, place, sums);
}
// Loads the sums that a cell sent up, or down.
template <bool DOWN, int FIRST = 0>
__device__ __forceinline__ void get(Real (&sums)[ACROSS], const Real* from, const int place) {
    constexpr int SIZE = FIRST < WHOLE ? piece(sizeof(Real), WHOLE - FIRST) : 1;
    constexpr int PIECE = FIRST < WHOLE ? SIZE : piece(sizeof(Real), SENT - 2 * WHOLE);  // piece that contains them
    constexpr int SLOT = DOWN ? sent_down(FIRST) : sent_up(FIRST), WITHIN = (SLOT - (FIRST < WHOLE ? 0 : 2 * WHOLE)) % PIECE;
    const Real* const values = from + (SLOT - WITHIN) * ROOM + place * PIECE + WITHIN;
    const auto found = *reinterpret_cast<const Piece<Real, SIZE>*>(values);
#pragma unroll
    for (int k = 0; k < SIZE; ++k) sums[FIRST + k] = found.value[k];
    if constexpr (FIRST + SIZE < ACROSS) get<DOWN, FIRST + SIZE>(sums, from, place);
}

// Position of a thread. first, last: whether its rows include the first, or the last, row of the tile.
struct Seat {
    int x, y, line, layer, bottom, planes, number;
    bool first, last;
};
__device__ __forceinline__ Seat take_seat(const int x, const int y, const int height) {
    Seat seat;
    seat.x = x;
    seat.y = y;
    seat.number = y * LANES + x;
    seat.line = FLAT ? 0 : (blockIdx.y * SEATS + y) * ROWS;
    seat.layer = FLAT ? blockIdx.y * SEATS + y : blockIdx.z;
    seat.bottom = seat.layer * COLUMN;
    seat.planes = height - seat.bottom < COLUMN ? height - seat.bottom : COLUMN;
    seat.first = y == 0;
    seat.last = y == SEATS - 1;
    return seat;
}

// Sums that cross tiles, in the order of lanes: along y for each plane of a row of tiles, along z for each row of a
// layer of tiles.
struct Faces {
    Real *up, *down, *rising, *falling;
};
__device__ __forceinline__ Faces faces_of(Real* memory, const int step, const int lines, const int height) {
    const int sideways = FLAT ? 0 : gridDim.y * height * (ACROSS * WIDTH);
    const int upwards = (FLAT ? gridDim.y * SEATS : gridDim.z) * lines * (PENDING * WIDTH);
    Real* const first = memory + step % 2 * 2 * (sideways + upwards);
    return {first, first + sideways, first + 2 * sideways, first + 2 * sideways + upwards};
}

__device__ __forceinline__ int before(const int i, const int count) { return i == 0 ? count - 1 : i - 1; }
__device__ __forceinline__ int after(const int i, const int count) { return i == count - 1 ? 0 : i + 1; }

// What an outer thread receives from the next row of tiles and sends to it; a single thread has two sides.
constexpr int SIDES = FLAT ? 0 : SEATS == 1 ? 2 : 1, ENTERING = SIDES ? SIDES : 1, NEXT = ACROSS * WIDTH;
typedef Real Entering[ENTERING][WIDE][ACROSS];
struct Sides {
    const Real* in[ENTERING];  // sums of the next plane
    Real* out[ENTERING];
    int below, above;          // distances from the lowest and the highest plane of the tile to their neighbours
};
__device__ __forceinline__ bool at_rim(const Seat& seat) { return SIDES && (seat.first || seat.last); }
__device__ __forceinline__ Sides sides_of(const Faces& received, const Faces& sent, const Seat& seat, const int height) {
    const int tile = blockIdx.y, tiles = gridDim.y;
    Sides sides;
#pragma unroll
    for (int side = 0; side < ENTERING; ++side) {
        const bool first = ENTERING == 1 ? seat.first : side == 0;
        const int next = first ? before(tile, tiles) : after(tile, tiles);
        sides.in[side] = (first ? received.up : received.down) + (next * height + seat.bottom) * NEXT + seat.x;
        sides.out[side] = (first ? sent.down : sent.up) + (tile * height + seat.bottom) * NEXT + seat.x;
    }
    sides.below = (seat.bottom == 0 ? height - 1 : -1) * NEXT;
    sides.above = (seat.bottom + seat.planes == height ? 1 - height : 1) * NEXT;
    return sides;
}
__device__ __forceinline__ void expect_side(Entering& sums, Sides& sides, const bool low, const bool high) {
#pragma unroll
    for (int side = 0; side < SIDES; ++side) {
        const Real *const here = sides.in[side], *const below = here + (low ? sides.below : -NEXT);
        const Real* const above = here + (high ? sides.above : NEXT);
#pragma unroll
        for (int n = 0; n < ACROSS; ++n) {
            const Real* const row = (way(n) > 0 ? below : way(n) < 0 ? above : here) + n * WIDTH;
#pragma unroll
            for (int v = 0; v < WIDE; ++v) sums[side][v][n] = __ldcg(row + v * LANES);
        }
        sides.in[side] += NEXT;
    }
}
__device__ __forceinline__ void send_side(const Real (&sums)[WIDE][ACROSS], Real* to) {
#pragma unroll
    for (int n = 0; n < ACROSS; ++n) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) to[n * WIDTH + v * LANES] = sums[v][n];
    }
}

// Load and store the sums that cross tiles along z.
typedef Real Crossing[ROWS][WIDE][PENDING];
__device__ __forceinline__ void expect_layer(
    Crossing& sums, const Real* from, const int layer, const int lines, const Seat& seat) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const Real* const row = from + (layer * lines + seat.line + r) * (PENDING * WIDTH) + seat.x;
#pragma unroll
        for (int n = 0; n < PENDING; ++n) {
#pragma unroll
            for (int v = 0; v < WIDE; ++v) sums[r][v][n] = __ldcg(row + n * WIDTH + v * LANES);
        }
    }
}
__device__ __forceinline__ void send_layer(const Crossing& sums, Real* to, const int lines, const Seat& seat) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        Real* const row = to + (seat.layer * lines + seat.line + r) * (PENDING * WIDTH) + seat.x;
#pragma unroll
        for (int n = 0; n < PENDING; ++n) {
#pragma unroll
            for (int v = 0; v < WIDE; ++v) row[n * WIDTH + v * LANES] = sums[r][v][n];
        }
    }
}

typedef Real Cells[ROWS][WIDE][MOMENTS];

__device__ __forceinline__ void add_side(Cells& m, const Entering& sums, const Seat& seat) {
#pragma unroll
    for (int v = 0; v < WIDE; ++v) {
        if (SIDES && seat.first) enter_up(m[0][v], sums[0][v]);
        if (SIDES && seat.last) enter_down(m[ROWS - 1][v], sums[ENTERING - 1][v]);
    }
}

// Streams along x: from cell to cell of a lane, and by shuffles from its outer cells to the neighbouring lanes (a
// ring).
__device__ __forceinline__ void hand_across(Real (&right)[WIDE][MOVERS], Real (&left)[WIDE][MOVERS], const int lane) {
#pragma unroll
    for (int k = 0; k < MOVERS; ++k) {
        const Real from_left = __shfl_sync(0xffffffffu, right[WIDE - 1][k], (lane + LANES - 1) % LANES, LANES);
        const Real from_right = __shfl_sync(0xffffffffu, left[0][k], (lane + 1) % LANES, LANES);
#pragma unroll
        for (int v = WIDE - 1; v > 0; --v) right[v][k] = right[v - 1][k];
#pragma unroll
        for (int v = 0; v < WIDE - 1; ++v) left[v][k] = left[v + 1][k];
        right[0][k] = from_left;
        left[WIDE - 1][k] = from_right;
    }
}

// A pass takes TOGETHER planes. If registers keep moments, they are those of the first plane of each pass, and every
// pass is unrolled, since registers have no index.
constexpr int PASSES = (COLUMN + TOGETHER - 1) / TOGETHER, HELD = HOLDS ? PASSES : 0, SHELVES = COLUMN - HELD;
__device__ __forceinline__ int shelf_of(const int k) { return HOLDS ? k - (k + TOGETHER - 1) / TOGETHER : k; }

// Stored moments in registers, two per register if they are 16 bits wide.
typedef Piece<Stored, sizeof(Stored) == 2 ? 2 : 1> Register;
constexpr int IN_ONE = sizeof(Register) / sizeof(Stored);
typedef Register Held[ROWS][WIDE][MOMENTS / IN_ONE];
typedef Held Registers[HOLDS ? HELD : 1];

__device__ __forceinline__ Stored* shelf(const int k) {
    return reinterpret_cast<Stored*>(shared) + shelf_of(k) * (PLANE * MOMENTS);
}
__device__ __forceinline__ int place_of(const int number, const int r, const int v) {
    return (r * WIDE + v) * THREADS + number;
}

__device__ __forceinline__ void read(Cells& m, const Held& held) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) {
#pragma unroll
            for (int i = 0; i < MOMENTS; ++i) m[r][v][i] = widen(held[r][v][i / IN_ONE][i % IN_ONE]);
        }
    }
}
__device__ __forceinline__ void write(const Cells& m, Held& held) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) {
#pragma unroll
            for (int i = 0; i < MOMENTS; i += IN_ONE) {
                write_part<IN_ONE>(&m[r][v][i], reinterpret_cast<Stored*>(&held[r][v][i / IN_ONE]));
            }
        }
    }
}
template <int NUMBER>
struct Number {
    __device__ __forceinline__ constexpr operator int() const { return NUMBER; }
};
// Returns whether plane j of a pass may be the last plane of a tile (before = 1), or the last but one (before = 2). If
// registers keep moments, tiles end with a pass.
__device__ __forceinline__ constexpr bool ends(const int j, const int before) { return !HOLDS || j == TOGETHER - before; }

// Runs passes until one returns false: no planes are left.
template <int COUNT, class Does>
__device__ __forceinline__ bool one_by_one(const Does& does) {
    if constexpr (COUNT == 0) {
        return true;
    } else {
        return one_by_one<COUNT - 1>(does) && does(Number<COUNT - 1>());
    }
}
template <class Does>
__device__ __forceinline__ void each_pass(const Does& does) {
    if constexpr (HOLDS) {
        one_by_one<PASSES>(does);
    } else {
#pragma unroll 1
        for (int pass = 0; pass < PASSES; ++pass) {
            if (!does(pass)) break;
        }
    }
}

// Load and store the moments of plane k, which is plane j of its pass.
__device__ __forceinline__ void take_plane(Cells& m, const Held& held, const int k, const int j, const int number) {
    if (HOLDS && j == 0) return read(m, held);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) take_up<PLANE>(m[r][v], shelf(k), place_of(number, r, v));
    }
}
__device__ __forceinline__ void keep_plane(const Cells& m, Held& held, const int k, const int j, const int number) {
    if (HOLDS && j == 0) return write(m, held);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) keep<PLANE>(shelf(k), place_of(number, r, v), m[r][v]);
    }
}

// Returns where the sums of plane k are exchanged: in the place of its moments, or in two buffers in turn.
__device__ __forceinline__ Real* exchange_of(const int k, const int j) {
    Real* const behind = reinterpret_cast<Real*>(reinterpret_cast<Stored*>(shared) + SHELVES * (PLANE * MOMENTS));
    if (!IN_PLACE) return behind + k % 2 * (SENT * ROOM);
    return HOLDS && j == 0 ? behind : reinterpret_cast<Real*>(shelf(k));
}

//@default walls
//@end walls

__device__ __forceinline__ Offset cell_of(const Seat& seat, const int k, const int r, const int v, const Extents& n) {
    const int z = seat.bottom + k;
    return along_x(seat.x * WIDE + v, n) + (FLAT ? along_y(z, n) : along_y(seat.line + r, n) + along_z(z, n));
}

// After the last step, sums of other tiles are still to be added. 16-bit values would be rounded twice, so 32-bit ones
// are kept meanwhile, with one half of their bits in each lattice copy.
constexpr bool HALVED = sizeof(Stored) == 2;
__device__ __forceinline__ void leave_plane(
    const Cells& m, Stored* source, Stored* target, const int k, const int nx, const int ny, const int nz) {
    const Extents n = storage_extents(anew(nx), anew(ny), anew(nz));
    const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), FLAT ? ny : nz);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) {
            const Offset cell = cell_of(seat, k, r, v, n);
#pragma unroll
            for (int i = 0; i < MOMENTS; ++i) {
                const unsigned bits = __float_as_uint(static_cast<float>(m[r][v][i]));
                source[cell + component(i, n)] = static_cast<Stored>(bits >> 16);
                target[cell + component(i, n)] = static_cast<Stored>(bits & 0xffffu);
            }
        }
    }
}
__device__ __forceinline__ void find_plane(
    Cells& m, const Stored* source, const Stored* target, const Seat& seat, const int k, const Extents& n) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int v = 0; v < WIDE; ++v) {
            const Offset cell = cell_of(seat, k, r, v, n);
#pragma unroll
            for (int i = 0; i < MOMENTS; ++i) {
                const unsigned high = static_cast<unsigned>(source[cell + component(i, n)]);
                m[r][v][i] = __uint_as_float(high << 16 | static_cast<unsigned>(target[cell + component(i, n)]));
            }
        }
    }
}

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(THREADS) step_0(
    Stored* source, Stored* target, unsigned* barrier, Real* faces, const int steps, const int nx, const int ny,
    const int nz, const Real omega)
{
//@end signature
    const Extents n = storage_extents(nx, ny, nz);
    const int lines = FLAT ? 1 : ny, height = FLAT ? ny : nz;
    const int layers = FLAT ? gridDim.y * SEATS : gridDim.z;
    const int number = threadIdx.y * LANES + threadIdx.x;
    Registers held;
    {
        const Seat seat = take_seat(threadIdx.x, threadIdx.y, height);
        each_pass([&](const auto pass) {
#pragma unroll
            for (int j = 0; j < TOGETHER; ++j) {
                const int k = pass * TOGETHER + j;
                if (HOLDS && j == 0 && k >= seat.planes) return false;
                if (!HOLDS && k >= seat.planes) break;
                Cells m;
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) {
                        const Stored* const cell = source + cell_of(seat, k, r, v, n);
#pragma unroll
                        for (int i = 0; i < MOMENTS; ++i) m[r][v][i] = widen(cell[component(i, n)]);
                    }
                }
                keep_plane(m, held[HOLDS ? pass : 0], k, j, number);
            }
            return true;
        });
    }
    //@begin begin
    const unsigned blocks = gridDim.y * gridDim.z;
    //@end begin

#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), height);
        const Faces received = faces_of(faces, step + 1, lines, height), sent = faces_of(faces, step, lines, height);
        //@begin wait
        if (number == 0 && step) wait_for(barrier, step * blocks);
        //@end wait
        __syncthreads();
        Sides sides = sides_of(received, sent, seat, height);
        Entering entering;
        Crossing crossing;
        if (step) {
            expect_layer(crossing, received.rising, before(seat.layer, layers), lines, seat);
            if (at_rim(seat)) expect_side(entering, sides, true, seat.planes == 1);
        }
        Real current[ROWS][WIDE][CURRENT] = {}, pending[ROWS][WIDE][PENDING] = {};
        //@default owed
        //@end owed
        each_pass([&](const auto pass) {
#pragma unroll
            for (int j = 0; j < TOGETHER; ++j) {
                const int k = pass * TOGETHER + j;
                if (HOLDS && j == 0 && k >= seat.planes) return false;
                if (!HOLDS && k >= seat.planes) break;
                const bool low = k == 0, high = ends(j, 1) && k + 1 == seat.planes;
                Cells m;
                take_plane(m, held[HOLDS ? pass : 0], k, j, seat.number);
                if (step) {
                    add_side(m, entering, seat);
                    if (low || high) {
                        if (low && high) {
#pragma unroll
                            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                                for (int v = 0; v < WIDE; ++v) rise(m[r][v], crossing[r][v]);
                            }
                            expect_layer(crossing, received.falling, after(seat.layer, layers), lines, seat);
                        }
#pragma unroll
                        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                            for (int v = 0; v < WIDE; ++v) {
                                if (high) {
                                    fall(m[r][v], crossing[r][v]);
                                } else {
                                    rise(m[r][v], crossing[r][v]);
                                }
                            }
                        }
                    }
                    if (!high && at_rim(seat)) expect_side(entering, sides, false, ends(j, 2) && k + 2 == seat.planes);
                    if (ends(j, 2) && k + 2 == seat.planes) {
                        expect_layer(crossing, received.falling, after(seat.layer, layers), lines, seat);
                    }
                }
                //@default back
                //@end back
                Real up[ROWS][WIDE][ACROSS], down[ROWS][WIDE][ACROSS], level[ROWS][WIDE][LEVEL];
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    Real still[WIDE][LINES], right[WIDE][MOVERS], left[WIDE][MOVERS];
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) {
                        //@begin relax
                        relax(m[r][v], omega);
                        //@end relax
                        spread(m[r][v], still[v], right[v], left[v]);
                        //@default leave
                        //@end leave
                    }
                    hand_across(right, left, seat.x);
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) sum_up(still[v], right[v], left[v], up[r][v], down[r][v], level[r][v]);
                }
                Real* const exchange = exchange_of(k, j);
                if (SIDES) {
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) {
                        Real sums[SENT];
#pragma unroll
                        for (int a = 0; a < ACROSS; ++a) {
                            sums[sent_up(a)] = up[ROWS - 1][v][a];
                            sums[sent_down(a)] = down[0][v][a];
                        }
                        hand_on(exchange, place_of(seat.number, 0, v), sums);
                    }
                    if (seat.first) send_side(down[0], sides.out[0]);
                    if (seat.last) send_side(up[ROWS - 1], sides.out[ENTERING - 1]);
#pragma unroll
                    for (int side = 0; side < SIDES; ++side) sides.out[side] += NEXT;
                    __syncthreads();
                }
#pragma unroll
                for (int v = 0; v < WIDE; ++v) {
                    Real below[ACROSS] = {}, above[ACROSS] = {};
                    if (SIDES && !seat.first) get<false>(below, exchange, place_of(seat.number - LANES, 0, v));
                    if (SIDES && !seat.last) get<true>(above, exchange, place_of(seat.number + LANES, 0, v));
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
                        const Real(&rising)[ACROSS] = r ? up[r ? r - 1 : 0][v] : below;
                        const Real(&falling)[ACROSS] = r < ROWS - 1 ? down[r < ROWS - 1 ? r + 1 : r][v] : above;
                        gather(rising, falling, level[r][v], current[r][v], pending[r][v], m[r][v]);
                        //@default returned
                        //@end returned
                    }
                }
                if (low) {
                    Crossing sums;
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                        for (int v = 0; v < WIDE; ++v) fallen(m[r][v], sums[r][v]);
                    }
                    send_layer(sums, sent.falling, lines, seat);
                } else if (HALVED && step + 1 == steps) {
                    leave_plane(m, source, target, k - 1, nx, ny, nz);
                } else {
                    keep_plane(m, held[HOLDS ? pass : 0], k - 1, (j + TOGETHER - 1) % TOGETHER, seat.number);
                }
            }
            return true;
        });
        send_layer(pending, sent.rising, lines, seat);
        __syncthreads();
        //@begin said
        if (number == 0) arrive(barrier);
        //@end said
        Cells m;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int v = 0; v < WIDE; ++v) {
                finish(m[r][v], current[r][v]);
                //@default paid
                //@end paid
            }
        }
        if (HALVED && step + 1 == steps) {
            leave_plane(m, source, target, seat.planes - 1, nx, ny, nz);
        } else {
            keep_plane(m, held[0], seat.planes - 1, 1, seat.number);
        }
    }

    //@begin last
    if (number == 0) wait_for(barrier, steps * blocks);
    //@end last
    __syncthreads();
    Stored* const left = steps % 2 ? target : source;
    const Seat seat = take_seat(anew(threadIdx.x), anew(threadIdx.y), height);
    const Faces received = faces_of(faces, steps + 1, lines, height);
    Sides sides = sides_of(received, received, seat, height);
    each_pass([&](const auto pass) {
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) {
            const int k = pass * TOGETHER + j;
            if (HOLDS && j == 0 && k >= seat.planes) return false;
            if (!HOLDS && k >= seat.planes) break;
            Cells m;
            if (HALVED) {
                find_plane(m, source, target, seat, k, n);
            } else {
                take_plane(m, held[HOLDS ? pass : 0], k, j, seat.number);
            }
            Entering entering;
            if (at_rim(seat)) expect_side(entering, sides, k == 0, k + 1 == seat.planes);
            add_side(m, entering, seat);
            Crossing crossing;
            if (k == 0) {
                expect_layer(crossing, received.rising, before(seat.layer, layers), lines, seat);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) rise(m[r][v], crossing[r][v]);
                }
            }
            if (k + 1 == seat.planes) {
                expect_layer(crossing, received.falling, after(seat.layer, layers), lines, seat);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                    for (int v = 0; v < WIDE; ++v) fall(m[r][v], crossing[r][v]);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int v = 0; v < WIDE; ++v) {
                    Stored* const cell = left + cell_of(seat, k, r, v, n);
#pragma unroll
                    for (int i = 0; i < MOMENTS; ++i) cell[component(i, n)] = narrow(m[r][v][i]);
                }
            }
        }
        return true;
    });
    //@begin go
    if (number == 0) go(barrier, blocks);
    //@end go
}
//@end entry
