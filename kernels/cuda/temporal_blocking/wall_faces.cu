// Cut links from the faces of the box. Lanes beyond the faces across x compute invalid values, which are discarded.
constexpr int WORDS = 0;  // bytes of shared memory
struct Links {
    Word across[CELLS];
    int first_y;
    bool low, high, near;  // whether the warp has cells at the faces across x, or at a face across y
    Way side;
};

__device__ __forceinline__ void find_links(
    Links& links, void* memory, const int first_x, const int first_y, const int first_z, const int nx, const int ny) {
    Word some = 0;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        links.across[v] = at_faces(first_x + v, nx, WALLED_X, CUT_X_LOW, CUT_X_HIGH);
        some |= links.across[v];
    }
    links.first_y = first_y;
    links.low = anywhere(some & CUT_X_LOW);
    links.high = anywhere(some & CUT_X_HIGH);
    links.near = WALLED_Y && (first_y <= 0 || first_y + ROWS >= ny);
    links.side = side_of(links.low, links.high);
}

__device__ __forceinline__ void next_links(Links& links, void* memory) {}

// Returns whether faces across y or z cut links of the warp's cells in a plane or in the plane below.
__device__ __forceinline__ bool others_cut(const Links& links, const int t, const int z, const int nz) {
    return links.near || (WALLED_Z && (z <= 1 || z >= nz - 1));
}

// Returns whether any link was cut in the plane below.
__device__ __forceinline__ bool cut_before(const Links& links, const int t, const int z, const int nz) {
    return links.near || links.side != OPEN || (WALLED_Z && (z <= 1 || z >= nz));
}

// Returns the links of a row that faces across y and z cut.
__device__ __forceinline__ Word links_of_row(const Links& links, const int r, const int z, const int ny, const int nz) {
    return at_faces(links.first_y + r, ny, WALLED_Y, CUT_Y_LOW, CUT_Y_HIGH) |
           at_faces(z, nz, WALLED_Z, CUT_Z_LOW, CUT_Z_HIGH);
}

__device__ __forceinline__ Word links_of(
    const Links& links, const int t, const int r, const int v, const int z, const int ny, const int nz) {
    return links.across[v] | links_of_row(links, r, z, ny, nz);
}

__device__ __forceinline__ void silence(
    Real (&m)[CELLS][MOMENTS], const Links& links, const int t, const int r, const int z, const int ny, const int nz) {
    const Word row = links_of_row(links, r, z, ny, nz);
#pragma unroll
    for (int v = 0; v < CELLS; ++v) silence(m[v], row);
}
