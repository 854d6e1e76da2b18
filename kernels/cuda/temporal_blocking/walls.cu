// What a march has besides where links are cut, by faces of the box or by solid cells.
//
// A cell that is solid or outside of the box sends nothing. A cut link sends back what its own cell sends along it
// (half-way bounce-back), and what a moving face adds: each cell adds up what returns to it and leaves the sums in shared
// memory until the barrier, where registers are scarce. Then they join what waits for the next plane. Links are taken by
// their c_x, since in most warps few of those are cut. Warps whose links are all open, and those of which a face across x
// alone cuts links, have each a text of their own, without a branch: its rows can be computed side by side.
//
typedef unsigned int Word;  // of a cell. Bit i: the link by which f_i arrives is cut; bit 0: the cell sends nothing

// A number for each row of a thread, in shared memory: with walls registers run out, and what a compiler then puts into local
// memory comes back from far away, since shared memory leaves no room for a cache.
struct Kept {
    unsigned* first;
    __device__ __forceinline__ unsigned& operator[](const int r) const { return first[r * THREADS]; }
};
constexpr unsigned NOWHERE = ~0u;  // of a row that is outside of the box, or not stored

// All of them, read side by side: one after the other they would be waited for as often.
struct Numbers {
    unsigned of[ROWS];
    __device__ __forceinline__ unsigned operator[](const int r) const { return of[r]; }
};
__device__ __forceinline__ Numbers side_by_side(const Kept& kept) {
    Numbers numbers;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) numbers.of[r] = kept[r];
    return numbers;
}

// What all lanes of a warp have alike. A compiler that knows it keeps shuffles within branches as they are.
template <class T>
__device__ __forceinline__ T alike(const T value) {
    return static_cast<T>(__shfl_sync(0xffffffffu, static_cast<int>(value), 0, 32));
}

#ifdef __CUDACC__
// The barrier of a block, which warps may reach in several texts, as they may not reach __syncthreads.
__device__ __forceinline__ void meet_block() { asm volatile("barrier.sync 0, %0;" ::"n"(THREADS) : "memory"); }
#endif  // elsewhere the host provides it

// What cuts links of a warp: nothing, one face across x alone, or anything. The first planes of a chunk, which not all
// stages need, are left to the text for anything: a question for it costs the others registers.
enum Way { OPEN, X_LOW, X_HIGH, MIXED };

//@begin faces
constexpr bool BY_SIDE = true;  // whether faces across x have a text of their own
constexpr Word CUT_X_LOW = 0, CUT_X_HIGH = 0, CUT_Y_LOW = 0, CUT_Y_HIGH = 0, CUT_Z_LOW = 0, CUT_Z_HIGH = 0;
constexpr bool WALLED_Y = false, WALLED_Z = false;
//@end faces

// Links that the faces across one axis cut; nothing beyond them.
__device__ __forceinline__ Word at_faces(const int i, const int n, const bool walled, const Word low, const Word high) {
    if (!walled) return 0;
    return i < 0 || i >= n ? 1u : (i == 0 ? low : 0u) | (i == n - 1 ? high : 0u);
}

__device__ __forceinline__ bool beyond(const int i, const int n, const bool walled) {
    return walled && (i < 0 || i >= n);
}

// Of warps with cells at faces across x, as far as those are concerned.
__device__ __forceinline__ Way side_of(const bool low, const bool high) {
    if (!low && !high) return OPEN;
    return !BY_SIDE || (low && high) ? MIXED : low ? X_LOW : X_HIGH;
}

__device__ __forceinline__ bool anywhere(const Word word) { return __any_sync(0xffffffffu, word != 0); }

__device__ __forceinline__ Real where_cut(const Word word, const int i, const Real value) {
    return word >> i & 1u ? value : Real(0);
}

//@begin reflect
constexpr int RETURNED = 16, APART = 32;  // sums of what returns to a cell, and how far apart they lie
__device__ __forceinline__ void reflect(
    Real* back, const Word cut, const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS]) {}
__device__ __forceinline__ Real take_back(Real (&current)[CURRENT], const Word cut, const Real* back) { return 0; }
//@end reflect

__device__ __forceinline__ Word unless_silent(const Word word) { return word & 1u ? 0u : word; }

__device__ __forceinline__ void silence(Real (&m)[MOMENTS], const Word word) {
#pragma unroll
    for (int k = 0; k < MOMENTS; ++k) m[k] = word & 1u ? Real(0) : m[k];
}

__device__ __forceinline__ void send_nothing(
    Real (&up)[CELLS][ACROSS], Real (&down)[CELLS][ACROSS], Real (&level)[CELLS][LEVEL]) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
#pragma unroll
        for (int k = 0; k < ACROSS; ++k) up[v][k] = down[v][k] = 0;
#pragma unroll
        for (int k = 0; k < LEVEL; ++k) level[v][k] = 0;
    }
}

//@begin known
#include "wall_faces.cu"
//@end known

// Of the planes that the stages of a warp work on, the first of them on z.
__device__ __forceinline__ Way way_of(const Links& links, const int z, const int nz) {
    bool others = false;
#pragma unroll
    for (int t = 0; t < STEPS; ++t) others |= others_cut(links, t, z - t, nz);
    return others ? MIXED : links.side;
}

// Nothing comes in over the faces across x, from lanes that are beyond or at the other end of the warp.
__device__ __forceinline__ void stop_at_sides(
    Real (&right)[CELLS][MOVERS], Real (&left)[CELLS][MOVERS], const Links& links, const int lane, const int first_x,
    const int nx) {
    if (WALLED_X && links.low) {
        const bool last = lane == 31 || first_x + CELLS == 0;
#pragma unroll
        for (int k = 0; k < MOVERS; ++k) right[CELLS - 1][k] = last ? Real(0) : right[CELLS - 1][k];
    }
    if (WALLED_X && links.high) {
        const bool first = lane == 0 || first_x == nx;
#pragma unroll
        for (int k = 0; k < MOVERS; ++k) left[0][k] = first ? Real(0) : left[0][k];
    }
}

//@begin sides
#include "wall_sides.cu"
//@end sides

//@begin rows
#include "wall_rows.cu"
//@end rows
