// Cut links from words in memory, one per cell. The words of a plane stay in shared memory while its values pass
// through the stages, and only warps with a cut link read them again. No word is loaded for cells outside of the box:
// buffers are initialised with words of cells that send nothing.
struct alignas(CELLS < 4 ? CELLS * sizeof(Word) : 16) Marks {
    Word of[CELLS];
};
constexpr int PLACES = STEPS + 1;                   // planes whose words are buffered, and one that is being loaded
constexpr int EXPECTED = PLACES * ROWS * THREADS;   // after them: the words that the faces across x alone would give
constexpr int WORDS = (EXPECTED + THREADS) * sizeof(Marks) + ROWS * THREADS * sizeof(unsigned);
struct Links {
    Kept row;  // first cell of the thread within a plane; NOWHERE outside of the box
    Marks* words;
    Marks next[PREFETCH == 2 ? 1 : ROWS];
    int ahead;       // plane that is loaded next; may lie outside of the box
    int place;       // buffer of the plane of the first stage
    unsigned busy;   // bit t: other words in the plane of stage t than the faces across x give
    bool low, high;  // whether the warp has cells at the faces across x
    Way side;
};

// Returns the words of cells that send nothing.
__device__ __forceinline__ Marks silent() {
    Marks marks;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) marks.of[v] = 1u;
    return marks;
}

// Finds the words of the thread, and its rows after them.
__device__ __forceinline__ void find_words(Links& links, void* memory) {
    const int thread = threadIdx.y * 32 + threadIdx.x;
    links.words = static_cast<Marks*>(memory) + thread;
    links.row = {reinterpret_cast<unsigned*>(static_cast<Marks*>(memory) + EXPECTED + THREADS) + thread};
}

__device__ __forceinline__ void find_links(
    Links& links, void* memory, const int first_x, const int first_y, const int first_z, const int nx, const int ny) {
    const bool outside = beyond(first_x, nx, WALLED_X);
    find_words(links, memory);
    links.ahead = first_z;
    links.place = STEPS;
    links.busy = 0;
    links.low = WALLED_X && anywhere(first_x == 0);
    links.high = WALLED_X && anywhere(first_x + CELLS == nx);
    links.side = side_of(links.low, links.high);
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        links.words[EXPECTED].of[v] = at_faces(first_x + v, nx, WALLED_X, CUT_X_LOW, CUT_X_HIGH);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int y = first_y + r;
        const bool away = outside || beyond(y, ny, WALLED_Y);
        links.row[r] = away ? NOWHERE : wrapped(y, ny) * nx + wrapped(first_x, nx);
        for (int k = 0; PREFETCH == 2 && away && k < PLACES; ++k) links.words[(k * ROWS + r) * THREADS] = silent();
    }
}

// Returns the words of a row in the plane of a stage; stage -1: in the plane that is being loaded.
__device__ __forceinline__ Marks& words_of(const Links& links, const int t, const int r) {
    const int place = links.place - t;
    return links.words[((place < 0 ? place + PLACES : place == PLACES ? 0 : place) * ROWS + r) * THREADS];
}

// Loads the words of a plane. Using them here would wait for the prefetch.
__device__ __forceinline__ void fetch_links(
    Links& links, const Word* words, const int wrapped_z, const int nx, const int ny, const int nz) {
    const bool outside = beyond(links.ahead, nz, WALLED_Z);
    const Numbers row = side_by_side(links.row);
    ++links.ahead;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const unsigned within = row[r];
        Marks& next = PREFETCH == 2 ? words_of(links, -1, r) : links.next[PREFETCH == 2 ? 0 : r];
        if (PREFETCH != 2 || outside) next = silent();
        if (outside || within == NOWHERE) continue;
        const Word* const place = words + (Index(wrapped_z) * (Index(nx) * ny) + within);
        copy(&next, reinterpret_cast<const Marks*>(place), PREFETCH == 2);
    }
}

// The loaded plane becomes that of the first stage.
__device__ __forceinline__ void next_links(Links& links, void* memory) {
    find_words(links, memory);
    links.place = links.place == STEPS ? 0 : links.place + 1;
    Word some = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        Marks& place = words_of(links, 0, r);
        if (PREFETCH != 2) place = links.next[PREFETCH == 2 ? 0 : r];
#pragma unroll
        for (int v = 0; v < CELLS; ++v) some |= place.of[v] ^ (WALLED_X ? links.words[EXPECTED].of[v] : 0u);
    }
    links.busy = links.busy << 1 | (anywhere(some) ? 1u : 0u);
}

// Returns whether links of the warp's cells in a plane, or in the plane below, are cut by more than faces across x.
__device__ __forceinline__ bool others_cut(const Links& links, const int t, const int z, const int nz) {
    return links.busy >> t & 3u;
}

// Returns whether any link was cut in the plane below.
__device__ __forceinline__ bool cut_before(const Links& links, const int t, const int z, const int nz) {
    return links.side != OPEN || links.busy >> (t + 1) & 1u;
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
