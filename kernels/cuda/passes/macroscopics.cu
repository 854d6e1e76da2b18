// Density and velocity of a state between two launches, by tables of the places of its values: one thread per cell.

//@begin title
// D3Q19
//@end title
//@begin types
typedef float Real;
constexpr int CELLS = 1;
constexpr int VALUES = 1;
constexpr int THREADS = 256;
constexpr bool WORDS = true;
//@end types
typedef unsigned int Word;  // bit k: value k lies where a cut link has it; the highest bit: the cell is solid
//@begin storage
typedef float Stored;
__device__ __forceinline__ Real widen(const Stored value) { return value; }
//@end storage

// Adds one value to density and momentum.
__device__ __forceinline__ void add(Real (&m)[4], const int k, const Real value) {
    switch (k) {
        //@begin sums
        case 0: m[0] += value; break;
        //@end sums
    }
}

__device__ __forceinline__ void leave(
    const Real (&m)[4], Real* macroscopics, const unsigned long long cell, const unsigned long long cells,
    const bool solid) {
    macroscopics[cell] = solid ? Real(1) : m[0];
    for (int d = 1; d < 4; ++d) macroscopics[d * cells + cell] = solid ? Real(0) : m[d] / m[0];
}

//@default box
// along: offsets of each value along x, y and z, of open links and, behind those, of cut ones.
extern "C" __global__ void __launch_bounds__(THREADS) macroscopics_of_box(
    const Stored* __restrict__ f0, const long long* __restrict__ along, const Word* __restrict__ words,
    Real* __restrict__ macroscopics, const int nx, const int ny, const int nz, const Real force_x, const Real force_y,
    const Real force_z)
{
    const int x = blockIdx.x * THREADS + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= nx) return;
    const unsigned long long cells = 1ull * nx * ny * nz, cell = (1ull * z * ny + y) * nx + x;
    const Word word = WORDS ? words[cell] : 0;
    const long long line = nx + ny + nz;
    Real m[4] = {REST, Real(0.5) * force_x, Real(0.5) * force_y, Real(0.5) * force_z};
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const long long* at = along + line * ((word >> k & 1) * VALUES + k);
        add(m, k, widen(f0[at[x] + at[nx + y] + at[nx + ny + z]]));
    }
    leave(m, macroscopics, cell, cells, word >> 31);
}
//@end box
//@default list
// places: of each value of each site; cells: of the sites.
extern "C" __global__ void __launch_bounds__(THREADS) macroscopics_of_list(
    const Stored* __restrict__ f0, const unsigned long long* __restrict__ places,
    const unsigned long long* __restrict__ cells_of, Real* __restrict__ macroscopics, const int sites, const int nx,
    const int ny, const int nz, const Real force_x, const Real force_y, const Real force_z)
{
    const unsigned long long site = 1ull * blockIdx.x * THREADS + threadIdx.x;
    if (site >= static_cast<unsigned long long>(sites)) return;
    Real m[4] = {REST, Real(0.5) * force_x, Real(0.5) * force_y, Real(0.5) * force_z};
#pragma unroll
    for (int k = 0; k < VALUES; ++k) add(m, k, widen(f0[places[1ull * k * sites + site]]));
    leave(m, macroscopics, cells_of[site], 1ull * nx * ny * nz, false);
}
//@end list
