// Cut links from words in memory, one for each cell: those of a plane follow its moments from stage to stage.
struct alignas(CELLS < 4 ? CELLS * sizeof(Word) : 16) Marks {
    Word of[CELLS];
};
struct Links {
    int row[ROWS];  // the first cell of the thread within a plane; -1 outside of the box
    Marks next[ROWS], words[STEPS][ROWS];
    unsigned busy;  // bit t: whether any link of the warp's cells is cut in the plane that stage t works on
    bool low, high;  // whether the warp has cells at the faces across x
};

__device__ __forceinline__ void find_links(
    Links& links, const int first_x, const int first_y, const int nx, const int ny) {
    const bool beyond = at_faces(first_x, nx, WALLED_X, 0, 0);
    links.busy = 0;
    links.low = anywhere(first_x == 0);
    links.high = anywhere(first_x + CELLS == nx);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int y = first_y + r;
        links.row[r] = beyond || at_faces(y, ny, WALLED_Y, 0, 0) ? -1 : wrapped(y, ny) * nx + wrapped(first_x, nx);
#pragma unroll
        for (int t = 0; t < STEPS; ++t) links.words[t][r] = {};
    }
}

// Reads the words of a plane, and does nothing with them: who looks at them now waits for what is read ahead.
__device__ __forceinline__ void fetch_links(
    Links& links, const Word* words, const int wrapped_z, const int nx, const int ny) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int within = links.row[r] < 0 ? 0 : links.row[r];
        const Word* const place = words + (Index(wrapped_z) * (Index(nx) * ny) + within);
        links.next[r] = *reinterpret_cast<const Marks*>(place);
    }
}

// What was read becomes the first of the planes that are worked on.
__device__ __forceinline__ void next_links(Links& links, const int z, const int nz) {
    const bool beyond = at_faces(z, nz, WALLED_Z, 0, 0);
    Word some = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int t = STEPS - 1; t > 0; --t) links.words[t][r] = links.words[t - 1][r];
#pragma unroll
        for (int v = 0; v < CELLS; ++v) {
            links.words[0][r].of[v] = beyond || links.row[r] < 0 ? 1u : links.next[r].of[v];
            some |= links.words[0][r].of[v];
        }
    }
    links.busy = links.busy << 1 | (anywhere(some) ? 1u : 0u);
}

// Whether any link of the warp's cells in a plane is cut, or was in the plane before.
__device__ __forceinline__ bool any_cut(const Links& links, const int t, const int z, const int nz) {
    return links.busy >> t & 3u;
}

__device__ __forceinline__ bool any_cut_before(const Links& links, const int t, const int z, const int nz) {
    return links.busy >> (t + 1) & 1u;
}

__device__ __forceinline__ Word links_of(
    const Links& links, const int t, const int r, const int v, const int z, const int ny, const int nz) {
    return links.words[t][r].of[v];
}

__device__ __forceinline__ void silence(
    Real (&m)[CELLS][MOMENTS], const Links& links, const int t, const int r, const int z, const int ny, const int nz) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) silence(m[v], links.words[t][r].of[v]);
}
