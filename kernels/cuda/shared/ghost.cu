// Refresh of the ghost rows beyond the y and z faces: one thread per ghost cell, numbered along the shell.
//
// Before a step that reads ghost cells, their periodic images are copied to them; after a step that writes to them,
// they are copied to their images. A value is copied only if a cell of the domain uses its place over an open link.

constexpr int SHELL_THREADS = 128;

struct Point {
    int x, y, z;
};

// Returns ghost cell `number`: first the planes below and above, then the two rows beside every other plane.
__device__ __forceinline__ Point shell_cell(const int number, const int nx, const int ny, const int nz) {
    const int plane = nx * (ny + 2), planes = GHOST_Z ? 2 * plane : 0;
    if (number < planes) {
        const int rest = number % plane;
        return {rest % nx, rest / nx - 1, number < plane ? -1 : nz};
    }
    const int rest = (number - planes) % (2 * nx);
    return {rest % nx, rest < nx ? -1 : ny, (number - planes) / (2 * nx)};
}

// Returns the periodic image of coordinate i, which may lie one cell beyond a face.
__device__ __forceinline__ int image(const int i, const int extent) { return i < 0 ? extent - 1 : i == extent ? 0 : i; }

__device__ __forceinline__ Index cell_index(const int x, const int y, const int z, const Extents& n) {
    return along_x(x, n) + (along_y(here(y, ORIGIN_Y), n) + along_z(here(z, ORIGIN_Z), n));
}

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(SHELL_THREADS) refresh_read_0(
    Stored* populations, const int nx, const int ny, const int nz)
{
//@end signature
    const int number = blockIdx.x * SHELL_THREADS + threadIdx.x;
    if (number >= nx * ((ny + 2) * (GHOST_Z ? nz + 2 : nz) - ny * nz)) return;
    const Point ghost = shell_cell(number, nx, ny, nz);
    const Extents n = storage_extents(nx, ny, nz);
    //@begin places
    const Index from = cell_index(ghost.x, image(ghost.y, ny), image(ghost.z, nz), n);
    const Index to = cell_index(ghost.x, ghost.y, ghost.z, n);
    //@end places
    // returns whether the cell at distance (-dx, -dy, -dz) from the ghost cell exists and its link is open
    const auto used = [&](const int dx, const int dy, const int dz, const auto cut) {
        const int x = image(ghost.x - dx, nx), y = ghost.y - dy, z = ghost.z - dz;
        return y >= 0 && y < ny && z >= 0 && z < nz && !cut(x, y, z);
    };
    //@begin load
    const bool used_1 = used(0, -1, 0, [&](int x, int y, int z) { return false; });
    const Stored value_1 = used_1 ? populations[component(1, n) + from] : Stored(0);
    //@end load
    //@begin store
    if (used_1) populations[component(1, n) + to] = value_1;
    //@end store
}
//@end entry
