// Cut links from the faces of the box alone.
struct Links {
    Word across[CELLS], row[ROWS], plane[STEPS];
};

__device__ __forceinline__ void find_links(
    Links& links, const int first_x, const int first_y, const int nx, const int ny) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) links.across[v] = at_faces(first_x + v, nx, WALLED_X, CUT_X_LOW, CUT_X_HIGH);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) links.row[r] = at_faces(first_y + r, ny, WALLED_Y, CUT_Y_LOW, CUT_Y_HIGH);
#pragma unroll
    for (int t = 0; t < STEPS; ++t) links.plane[t] = 0;
}

// What the faces cut of a plane follows it from stage to stage.
__device__ __forceinline__ void next_links(Links& links, const int z, const int nz) {
#pragma unroll
    for (int t = STEPS - 1; t > 0; --t) links.plane[t] = links.plane[t - 1];
    links.plane[0] = at_faces(z, nz, WALLED_Z, CUT_Z_LOW, CUT_Z_HIGH);
}

__device__ __forceinline__ Word links_of(
    const Links& links, const int t, const int r, const int v) {
    return links.across[v] | links.row[r] | links.plane[t];
}
