// The entry of march.cu where links are cut, by faces of the box or by solid cells.
//
// A cell that is solid or outside of the box sends nothing. A cut link sends back what its own cell sends along it
// (half-way bounce-back), and what a moving face adds: each cell adds up what returns to it and leaves the sums in shared
// memory until the barrier, where registers are scarce. Then they join what waits for the next plane. All that is done in
// branches, which warps skip whose links are all open; of links by their c_x, since in most warps few of those are cut.
//
typedef unsigned int Word;  // of a cell. Bit i: the link by which f_i arrives is cut; bit 0: the cell sends nothing

//@begin links
constexpr Word CUT_X_LOW = 0, CUT_X_HIGH = 0, CUT_Y_LOW = 0, CUT_Y_HIGH = 0, CUT_Z_LOW = 0, CUT_Z_HIGH = 0;
constexpr bool WALLED_X = false, WALLED_Y = false, WALLED_Z = false;
//@end links

// Links that the faces across one axis cut; nothing beyond them.
__device__ __forceinline__ Word at_faces(const int i, const int n, const bool walled, const Word low, const Word high) {
    if (!walled) return 0;
    return i < 0 || i >= n ? 1u : (i == 0 ? low : 0u) | (i == n - 1 ? high : 0u);
}

__device__ __forceinline__ bool anywhere(const Word word) { return __any_sync(0xffffffffu, word != 0); }

__device__ __forceinline__ Real where_cut(const Word word, const int i, const Real value) {
    return word >> i & 1u ? value : Real(0);
}

//@begin reflect
constexpr int RETURNED = 16, APART = 32;  // sums of what returns to a cell, and how far apart they lie
__device__ __forceinline__ void reflect(
    Real* back, const Word cut, const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS]) {}
__device__ __forceinline__ void take_back(Real (&current)[CURRENT], const Word cut, const Real* back) {}
//@end reflect

__device__ __forceinline__ Word unless_silent(const Word word) { return word & 1u ? 0u : word; }

//@begin known
#include "march_faces.cu"
//@end known

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(32 * WARPS) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const int nx, const int ny, const int nz,
    const Real omega)
//@end signature
{
    Exchange* const exchange = reinterpret_cast<Exchange*>(shared);
    Real* const returned = reinterpret_cast<Real*>(exchange + EXCHANGES);
    const int lane = threadIdx.x, warp = threadIdx.y;
    const Extents n = storage_extents(nx, ny, nz);
    const int seat = warp * NEXT + lane;

    const int width = (nx + SECTOR * gridDim.x - 1) / (SECTOR * gridDim.x) * SECTOR;
    const int height = (ny + gridDim.y - 1) / gridDim.y, depth = (nz + gridDim.z - 1) / gridDim.z;
    const int column = lane * CELLS - HALO, first_x = blockIdx.x * width + column;
    const int first_y = blockIdx.y * height + warp * ROWS - STEPS;
    const int x = wrapped(first_x, nx);
    const bool inside = column >= 0 && column < width && first_x < nx;
    Index row[ROWS];
    bool stored[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int line = warp * ROWS + r - STEPS;
        row[r] = along_y(wrapped(first_y + r, ny), n);
        stored[r] = inside && line >= 0 && line < height && first_y + r < ny;
    }
    Links links;
    find_links(links, first_x, first_y, nx, ny);
    const int begin = blockIdx.z * depth, end = least(begin + depth, nz);
    int next_z = wrapped(begin - STEPS, nz), z = begin;

    Real current[STEPS][ROWS][CELLS][CURRENT] = {}, pending[STEPS][ROWS][CELLS][PENDING] = {};
    Cells waiting[PREFETCH == 2 ? 1 : ROWS];
    Cells* const slots = reinterpret_cast<Cells*>(returned + ROWS * RETURNED * LANES) + (warp * 32 + lane) * ROWS;
    const auto fetch_plane = [&]() {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Cells& cells = PREFETCH == 2 ? slots[r] : waiting[PREFETCH == 2 ? 0 : r];
            fetch_cells(cells, source, along_z(next_z, n) + row[r], x, n, PREFETCH == 2);
        }
        if (PREFETCH == 2) copies_begin();
        //@begin fetch
        fetch_links(links, words, next_z, nx, ny);
        //@end fetch
        next_z = next_z + 1 == nz ? 0 : next_z + 1;
    };
    if (PREFETCH) fetch_plane();

    const int planes = end - begin + 2 * STEPS;
#pragma unroll 1
    for (int plane = 0; plane < planes; ++plane) {
        if (!PREFETCH) fetch_plane();
        if (PREFETCH == 2) copies_end();
        next_links(links, begin - STEPS + plane, nz);
        Real m[ROWS][CELLS][MOMENTS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) widen_cells(m[r], PREFETCH == 2 ? slots[r] : waiting[PREFETCH == 2 ? 0 : r]);
#pragma unroll
        for (int t = 0; t < STEPS; ++t) {
            Exchange& shelf = exchange[STEPS == 1 ? plane % 2 : t];
            const int here_z = begin - STEPS + plane - t;
            Real up[ROWS][CELLS][ACROSS], down[ROWS][CELLS][ACROSS], level[ROWS][CELLS][LEVEL];
            bool returns[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                Real still[CELLS][LINES], right[CELLS][MOVERS], left[CELLS][MOVERS];
                Word word[CELLS], some = 0, each = ~0u;
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    word[v] = links_of(links, t, r, v);
                    some |= word[v];
                    each &= word[v];
                }
                returns[r] = anywhere(some);
                if (returns[r] && !anywhere(~each & 1u)) {
                    returns[r] = false;  // the whole row is silent
#pragma unroll
                    for (int v = 0; v < CELLS; ++v) {
#pragma unroll
                        for (int k = 0; k < MOMENTS; ++k) m[r][v][k] = 0;
                    }
                } else {
#pragma unroll
                    for (int v = 0; v < CELLS; ++v) {
                        //@begin relax
                        relax(m[r][v], omega);
                        //@end relax
                    }
                }
                if (returns[r]) {
#pragma unroll
                    for (int v = 0; v < CELLS; ++v) {
#pragma unroll
                        for (int k = 0; k < MOMENTS; ++k) m[r][v][k] = word[v] & 1u ? Real(0) : m[r][v][k];
                    }
                }
#pragma unroll
                for (int v = 0; v < CELLS; ++v) spread(m[r][v], still[v], right[v], left[v]);
                if (returns[r]) {
#pragma unroll
                    for (int v = 0; v < CELLS; ++v) {
                        const Word own = unless_silent(word[v]);
                        Real* const back = returned + r * RETURNED * LANES + seat + v * 32;
                        //@begin return
                        reflect(back, own, still[v], right[v], left[v]);
                        //@end return
                    }
                }
                hand_across(right, left, lane);
#pragma unroll
                for (int v = 0; v < CELLS; ++v) sum_up(still[v], right[v], left[v], up[r][v], down[r][v], level[r][v]);
            }
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                send(shelf.up, up[ROWS - 1][v], seat + v * 32);
                send(shelf.down, down[0][v], seat + v * 32);
            }
            if (PREFETCH && t == 0 && plane + 1 < planes) fetch_plane();
            __syncthreads();
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                Real below[ACROSS], above[ACROSS];
                receive(below, shelf.up, seat + v * 32 - NEXT);
                receive(above, shelf.down, seat + v * 32 + NEXT);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const Real(&rising)[ACROSS] = r ? up[r ? r - 1 : 0][v] : below;
                    const Real(&falling)[ACROSS] = r < ROWS - 1 ? down[r < ROWS - 1 ? r + 1 : r][v] : above;
                    gather(rising, falling, level[r][v], current[t][r][v], pending[t][r][v], m[r][v]);
                    if (!returns[r]) continue;
                    const Word own = unless_silent(links_of(links, t, r, v));
                    take_back(current[t][r][v], own, returned + r * RETURNED * LANES + seat + v * 32);
                }
            }
        }
        if (plane < 2 * STEPS) continue;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (stored[r]) store_cells(m[r], target, along_z(z, n) + row[r], x, n);
        }
        ++z;
    }
}
//@end entry
