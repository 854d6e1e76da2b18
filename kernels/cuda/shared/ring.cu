// Refresh of the ring of ghost cells around the cells of each block: one thread block per block of cells.
//
// Before a step that reads ghost cells, each gets the value of the cell that it mirrors, in whichever block that lies.
// A value is copied only if a cell of the block uses its place over an open link.

constexpr int RING_THREADS = 128;

// Returns the storage coordinate of cell i, for blocks of `block` cells with `ring` ghost cells on either side.
__device__ __forceinline__ int stored_at(const int i, const int block, const int ring) {
    return i / block * (block + 2 * ring) + i % block + ring;
}

__device__ __forceinline__ int wrapped(const int i, const int extent) {
    return i < 0 ? i + extent : i >= extent ? i - extent : i;
}

__device__ __forceinline__ Index cell_index(const int x, const int y, const int z, const Extents& n) {
    return along_x(x, n) + (along_y(y, n) + along_z(z, n));
}

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(RING_THREADS) refresh_read_0(
    Stored* populations, const int nx, const int ny, const int nz)
{
//@end signature
    const int first_x = blockIdx.x * BLOCK_X, first_y = blockIdx.y * BLOCK_Y, first_z = blockIdx.z * BLOCK_Z;
    const int cells_x = first_x + BLOCK_X < nx ? BLOCK_X : nx - first_x;
    const int cells_y = first_y + BLOCK_Y < ny ? BLOCK_Y : ny - first_y;
    const int cells_z = first_z + BLOCK_Z < nz ? BLOCK_Z : nz - first_z;
    const int wide_x = cells_x + 2, wide_y = cells_y + 2, wide_z = cells_z + 2 * RING_Z;
    const Extents n = storage_extents(nx, ny, nz);
    for (int number = threadIdx.x; number < wide_x * wide_y * wide_z; number += RING_THREADS) {
        const int ghost_x = number % wide_x - 1, ghost_y = number / wide_x % wide_y - 1;
        const int ghost_z = number / (wide_x * wide_y) - RING_Z;
        const bool inner = ghost_x >= 0 && ghost_x < cells_x && ghost_y >= 0 && ghost_y < cells_y && ghost_z >= 0 &&
                           ghost_z < cells_z;
        if (inner) continue;
        const Index from = cell_index(
            stored_at(wrapped(first_x + ghost_x, nx), BLOCK_X, 1), stored_at(wrapped(first_y + ghost_y, ny), BLOCK_Y, 1),
            stored_at(wrapped(first_z + ghost_z, nz), BLOCK_Z, RING_Z), n);
        const Index to = cell_index(
            stored_at(first_x, BLOCK_X, 1) + ghost_x, stored_at(first_y, BLOCK_Y, 1) + ghost_y,
            stored_at(first_z, BLOCK_Z, RING_Z) + ghost_z, n);
        // returns whether the cell at distance (-dx, -dy, -dz) is one of the block and its link is open
        const auto used = [&](const int dx, const int dy, const int dz, const auto cut) {
            const int x = ghost_x - dx, y = ghost_y - dy, z = ghost_z - dz;
            return x >= 0 && x < cells_x && y >= 0 && y < cells_y && z >= 0 && z < cells_z &&
                   !cut(first_x + x, first_y + y, first_z + z);
        };
        //@begin load
        const bool used_1 = used(-1, 0, 0, [&](int x, int y, int z) { return false; });
        const Stored value_1 = used_1 ? populations[component(1, n) + from] : Stored(0);
        //@end load
        //@begin store
        if (used_1) populations[component(1, n) + to] = value_1;
        //@end store
    }
}
//@end entry
