// Cut links from words in memory, one for each cell: those of a plane wait in shared memory while its moments go from
// stage to stage, and only warps with a cut link look at them again.
struct alignas(CELLS < 4 ? CELLS * sizeof(Word) : 16) Marks {
    Word of[CELLS];
};
constexpr int PLACES = STEPS + 1;                                 // planes whose words wait, and one that is on its way
constexpr int WORDS = PLACES * ROWS * THREADS * sizeof(Marks);  // bytes of them
struct Links {
    int row[ROWS];  // the first cell of the thread within a plane; -1 outside of the box
    Marks* words;
    Marks next[PREFETCH == 2 ? 1 : ROWS];
    int place;       // of the plane that the first stage works on
    unsigned busy;   // bit t: whether any link of the warp's cells is cut in the plane that stage t works on
    bool low, high;  // whether the warp has cells at the faces across x
};

__device__ __forceinline__ void find_links(
    Links& links, void* memory, const int first_x, const int first_y, const int nx, const int ny) {
    const bool beyond = at_faces(first_x, nx, WALLED_X, 0, 0);
    links.words = static_cast<Marks*>(memory) + threadIdx.y * 32 + threadIdx.x;
    links.place = STEPS;
    links.busy = 0;
    links.low = anywhere(first_x == 0);
    links.high = anywhere(first_x + CELLS == nx);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int y = first_y + r;
        links.row[r] = beyond || at_faces(y, ny, WALLED_Y, 0, 0) ? -1 : wrapped(y, ny) * nx + wrapped(first_x, nx);
    }
}

// The words of a row in the plane that a stage works on; stage -1: in the one that is on its way.
__device__ __forceinline__ Marks& words_of(const Links& links, const int t, const int r) {
    const int place = links.place - t;
    return links.words[((place < 0 ? place + PLACES : place == PLACES ? 0 : place) * ROWS + r) * THREADS];
}

// Reads the words of a plane, and does nothing with them: who looks at them now waits for what is read ahead.
__device__ __forceinline__ void fetch_links(
    Links& links, const Word* words, const int wrapped_z, const int nx, const int ny) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int within = links.row[r] < 0 ? 0 : links.row[r];
        const Word* const place = words + (Index(wrapped_z) * (Index(nx) * ny) + within);
        copy(PREFETCH == 2 ? &words_of(links, -1, r) : &links.next[PREFETCH == 2 ? 0 : r],
             reinterpret_cast<const Marks*>(place), PREFETCH == 2);
    }
}

// What was read becomes the first of the planes that are worked on.
__device__ __forceinline__ void next_links(Links& links, const int z, const int nz) {
    const bool beyond = at_faces(z, nz, WALLED_Z, 0, 0);
    links.place = links.place == STEPS ? 0 : links.place + 1;
    Word some = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        Marks& place = words_of(links, 0, r);
        Marks marks = PREFETCH == 2 ? place : links.next[PREFETCH == 2 ? 0 : r];
#pragma unroll
        for (int v = 0; v < CELLS; ++v) {
            if (beyond || links.row[r] < 0) marks.of[v] = 1u;
            some |= marks.of[v];
        }
        place = marks;
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
    return words_of(links, t, r).of[v];
}

__device__ __forceinline__ void silence(
    Real (&m)[CELLS][MOMENTS], const Links& links, const int t, const int r, const int z, const int ny, const int nz) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) silence(m[v], words_of(links, t, r).of[v]);
}
