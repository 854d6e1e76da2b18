// Cut links, by faces of the box or by solid cells.
//
// A cell that is solid or outside of the box sends nothing. A cut link reflects what its own cell sends along it
// (half-way bounce-back), plus the momentum of a moving face. Each cell sums up what is reflected to it, keeps the
// sums in shared memory until the barrier and adds them to what is buffered for the next plane. Links are tested by
// groups of one c_x, since few groups are cut in most warps. Warps with open links only, and warps with one face
// across x only, have code of their own without branches, so that their rows are computed in parallel.
typedef unsigned int Word;  // Bit i: the link by which f_i arrives is cut; bit 0: the cell sends nothing

// One number per row of a thread in shared memory. With walls registers run out, and spills are slow, because shared
// memory leaves little of L1 to them.
struct Kept {
    unsigned* first;
    __device__ __forceinline__ unsigned& operator[](const int r) const { return first[r * THREADS]; }
};
constexpr unsigned NOWHERE = ~0u;  // row outside of the box, or not stored

// The numbers of all rows, loaded together to overlap their latency.
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

// Broadcasts lane 0. The compiler then knows the value to be uniform, and keeps shuffles in branches as they are.
template <class T>
__device__ __forceinline__ T alike(const T value) {
    return static_cast<T>(__shfl_sync(0xffffffffu, static_cast<int>(value), 0, 32));
}

#ifdef __CUDACC__
// The barrier of a thread block, which warps may reach from different branches (unlike __syncthreads).
__device__ __forceinline__ void meet_block() { asm volatile("barrier.sync 0, %0;" ::"n"(THREADS) : "memory"); }
#endif  // the host provides it otherwise

// What cuts links of a warp: nothing, one face across x, or anything. The first planes of a chunk take the general
// code: a test for stages that do not need them would cost registers elsewhere.
enum Way { OPEN, X_LOW, X_HIGH, MIXED };

//@begin faces
constexpr bool BY_SIDE = true;  // whether faces across x have code of their own
constexpr Word CUT_X_LOW = 0, CUT_X_HIGH = 0, CUT_Y_LOW = 0, CUT_Y_HIGH = 0, CUT_Z_LOW = 0, CUT_Z_HIGH = 0;
constexpr bool WALLED_Y = false, WALLED_Z = false;
//@end faces

// Returns the links that the faces across one axis cut; 1 (sends nothing) beyond them.
__device__ __forceinline__ Word at_faces(const int i, const int n, const bool walled, const Word low, const Word high) {
    if (!walled) return 0;
    return i < 0 || i >= n ? 1u : (i == 0 ? low : 0u) | (i == n - 1 ? high : 0u);
}

__device__ __forceinline__ bool beyond(const int i, const int n, const bool walled) {
    return walled && (i < 0 || i >= n);
}

// Returns the kind of a warp as far as faces across x decide it.
__device__ __forceinline__ Way side_of(const bool low, const bool high) {
    if (!low && !high) return OPEN;
    return !BY_SIDE || (low && high) ? MIXED : low ? X_LOW : X_HIGH;
}

__device__ __forceinline__ bool anywhere(const Word word) { return __any_sync(0xffffffffu, word != 0); }

__device__ __forceinline__ Real where_cut(const Word word, const int i, const Real value) {
    return word >> i & 1u ? value : Real(0);
}

//@begin reflect
constexpr int RETURNED = 16, APART = 32;  // reflected sums of a cell, and elements from one to the next
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

// Returns the kind of a warp over the planes of all its stages, of which the first is z.
__device__ __forceinline__ Way way_of(const Links& links, const int z, const int nz) {
    bool others = false;
#pragma unroll
    for (int t = 0; t < STEPS; ++t) others |= others_cut(links, t, z - t, nz);
    return others ? MIXED : links.side;
}

// Sets to zero what would arrive over faces across x, from lanes beyond them or at the other end of the warp.
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
