// Thread blocks along a z-curve over two axes of the grid instead of row by row.
//
// Devices start blocks row by row. The curve covers squares of 2^k by 2^k blocks, the largest that divide both extents,
// and the squares follow one another in rows. So every grid is covered exactly once.

//@begin axes
constexpr bool FLAT = false;  // whether the curve is over x and y; otherwise over y and z
//@end axes

// Gathers every second bit (Morton 1966; the masks halve the gaps between groups of bits).
__device__ __forceinline__ unsigned even_bits(unsigned number) {
    number &= 0x55555555u;
    number = (number | number >> 1) & 0x33333333u;
    number = (number | number >> 2) & 0x0f0f0f0fu;
    number = (number | number >> 4) & 0x00ff00ffu;
    return (number | number >> 8) & 0x0000ffffu;
}

__device__ __forceinline__ uint3 place_on_curve(const uint3 block, const dim3 grid) {
    const unsigned fast = FLAT ? grid.x : grid.y, slow = FLAT ? grid.y : grid.z;
    const unsigned common = fast | slow;
    const unsigned edge = common & -common;  // largest power of two that divides both
    const unsigned number = FLAT ? block.x + fast * block.y : block.y + fast * block.z;
    const unsigned square = number / (edge * edge), within = number % (edge * edge), squares = fast / edge;
    const unsigned u = square % squares * edge + even_bits(within);
    const unsigned v = square / squares * edge + even_bits(within >> 1);
    uint3 place = {FLAT ? u : block.x, FLAT ? v : u, FLAT ? block.z : v};
    return place;
}

// From here on, blockIdx is the place of the block on the curve.
#define blockIdx place_on_curve(blockIdx, gridDim)
