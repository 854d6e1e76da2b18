// The entry of one time step of a box: every thread updates one vector of CELLS cells of a row.

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
    const int z = blockIdx.z * BLOCK_Z + threadIdx.z;
    const bool inside = x < nx && y < ny && z < nz;
    //@end limits
    const unsigned active = CELLS == 1 ? 0 : __ballot_sync(0xffffffffu, inside);
    if (!inside) return;
    const Extents n = storage_extents(nx, ny, nz);
    //@default lane
    const Lane lane = make_lane(x, nx, n, active);
    //@end lane
    //@begin rows
    const Index row_oo = along_y(here(y, ORIGIN_Y), n) + along_z(here(z, ORIGIN_Z), n);
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
}
//@end entry
