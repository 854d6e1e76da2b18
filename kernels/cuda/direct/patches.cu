// Words of cells at faces with patches, computed from coordinates instead of loaded (flags.cu). Shapes are given in
// fractions of the face, as in lbmtune.catalogue.problem.patches; rounding is that of NumPy.

// Returns whether cell i of n lies between the rounded ends of a range, which holds at least one cell.
__device__ __forceinline__ bool between(const int i, const int n, const double low, const double high) {
    const int lowest = static_cast<int>(rint(low * n)), last = static_cast<int>(rint(high * n));
    const int first = lowest < n - 1 ? lowest : n - 1;
    return i >= first && i < (last > first + 1 ? last : first + 1);
}

// Returns the cell of n nearest to a point; the first one if two are.
__device__ __forceinline__ int nearest(const int n, const double at) {
    const int cell = static_cast<int>(ceil(__dmul_rn(at, n))) - 1;
    return cell < 0 ? 0 : cell;
}

// Returns the squared distance of the centre of cell i of n from a point; 0 if the face is one cell wide.
__device__ __forceinline__ double squared(const int i, const int n, const double at) {
    const double away = __dsub_rn(i + 0.5, __dmul_rn(at, n));
    return n == 1 ? 0 : __dmul_rn(away, away);
}

// Returns whether a cell is the nearest to the centre, or lies within a radius given as a fraction of the shorter edge.
__device__ __forceinline__ bool in_disc(
    const int i, const int n, const double at, const int j, const int m, const double beside, const double radius) {
    if (i == nearest(n, at) && j == nearest(m, beside)) return true;
    const double reach = __dmul_rn(radius, m == 1 || n < m ? n : m);
    return __dadd_rn(squared(j, m, beside), squared(i, n, at)) <= __dmul_rn(reach, reach);
}

//@begin owners
// Returns the number of the patch that a cell of a face belongs to; 0: none.
__device__ __forceinline__ int patch_x_low(const int y, const int z, const int ny, const int nz) {
    int patch = 0;
    if (between(y, ny, 0.25, 0.75) && between(z, nz, 0.0, 1.0)) patch = 1;
    return patch;
}
//@end owners

__device__ __forceinline__ Words words_here(
    const int x, const int y, const int z, const int nx, const int ny, const int nz) {
    Words made;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        Word word = 0;
        //@begin here
        const int at_x_low = x + v == 0 ? patch_x_low(y, z, ny, nz) : -1;
        if (at_x_low >= 0) word |= 0x2u;
        //@end here
        made.of[v] = word;
    }
    return made;
}

// Returns the bits of links that a moving wall cuts.
__device__ __forceinline__ Words moving_here(
    const int x, const int y, const int z, const int nx, const int ny, const int nz) {
    Words made;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        Word word = 0;
        //@begin moving
        const int at_x_low = x + v == 0 ? patch_x_low(y, z, ny, nz) : -1;
        if (at_x_low == 1) word |= 0x2u;
        //@end moving
        made.of[v] = word;
    }
    return made;
}
