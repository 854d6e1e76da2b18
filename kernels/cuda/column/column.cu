// One time step of a box: every thread updates a column of MARCH cells along z, one after another.
//
// The part of an index that depends on the row along y is computed once. The part that depends on the plane moves up
// with the thread: only that of the plane above is new.

//@begin constants
constexpr int MARCH = 4;
//@end constants

// Index parts of the plane of a cell and of the planes below and above.
struct Planes {
    Index below, level, above;
};

__device__ __forceinline__ Planes planes_at(const int z, const int nz, const Extents& n) {
    return {
        along_z(before(z, nz, ORIGIN_Z), n), along_z(here(z, ORIGIN_Z), n), along_z(after(z, nz, ORIGIN_Z), n)};
}

// Returns the index parts of plane z, given those of the plane below.
__device__ __forceinline__ Planes planes_above(const Planes& from, const int z, const int nz, const Extents& n) {
    return {from.level, from.above, along_z(after(z, nz, ORIGIN_Z), n)};
}

//@default helpers
//@end helpers

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y* BLOCK_Z) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const int nx, const int ny, const int nz,
    const Real omega)
{
//@end signature
    const int x = CELLS * (blockIdx.x * BLOCK_X + threadIdx.x);
    const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
    //@default limits
    const int first = MARCH * (blockIdx.z * BLOCK_Z + threadIdx.z);
    const bool inside = x < nx && y < ny && first < nz;
    //@end limits
    const unsigned active = CELLS == 1 ? 0 : __ballot_sync(0xffffffffu, inside);
    if (!inside) return;
    //@default top
    const int end = first + MARCH < nz ? first + MARCH : nz;
    //@end top
    const Extents n = storage_extents(nx, ny, nz);
    const Lane lane = make_lane(x, nx, n, active);
    //@default buffers
    //@end buffers
    //@begin columns
    const Index column_o = along_y(here(y, ORIGIN_Y), n);
    //@end columns
    //@default loop
    Planes planes = planes_at(first, nz, n);
#pragma unroll 1
    for (int z = first; z < end; ++z) {
        //@begin rows
        const Index row_oo = column_o + planes.level;
        //@end rows

        Real f[Q][CELLS];
        //@begin read
        read_here(f[0], source + component(0, n), row_oo, lane);
        read_before(f[1], source + component(1, n), row_oo, lane);
        read_after(f[2], source + component(2, n), row_oo, lane);
        //@end read
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
        planes = planes_above(planes, z + 1, nz, n);
    }
    //@end loop
}
//@end entry
