// Parts of faces by the coordinates of their cells, as lbmtune.catalogue.patches has them: shapes in shares of the face.
// Their words are worked out where others read them from memory (flags.cu). Roundings are those of NumPy.

// Whether cell i of n lies between the rounded ends of a range; one cell at least does.
__device__ __forceinline__ bool between(const int i, const int n, const double low, const double high) {
    const int lowest = static_cast<int>(rint(low * n)), last = static_cast<int>(rint(high * n));
    const int first = lowest < n - 1 ? lowest : n - 1;
    return i >= first && i < (last > first + 1 ? last : first + 1);
}

// The cell of n that is the nearest to a point; of two the first.
__device__ __forceinline__ int nearest(const int n, const double at) {
    const int cell = static_cast<int>(ceil(__dmul_rn(at, n))) - 1;
    return cell < 0 ? 0 : cell;
}

// The square of the distance of the centre of cell i of n from a point. What is one cell wide has no distances.
__device__ __forceinline__ double squared(const int i, const int n, const double at) {
    const double away = __dsub_rn(i + 0.5, __dmul_rn(at, n));
    return n == 1 ? 0 : __dmul_rn(away, away);
}

// Whether a cell lies within a radius, a share of the shorter edge, or is the one at the point.
__device__ __forceinline__ bool in_disc(
    const int i, const int n, const double at, const int j, const int m, const double beside, const double radius) {
    if (i == nearest(n, at) && j == nearest(m, beside)) return true;
    const double reach = __dmul_rn(radius, m == 1 || n < m ? n : m);
    return __dadd_rn(squared(j, m, beside), squared(i, n, at)) <= __dmul_rn(reach, reach);
}

//@begin owners
// Number of the patch that a cell of a face belongs to; 0: none.
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

// The same of links that a moving wall cuts.
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
