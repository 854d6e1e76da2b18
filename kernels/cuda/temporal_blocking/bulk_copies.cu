// Bulk copies (TMA) of planes to shared memory: one lane of a warp requests the runs that hold the warp's part of its
// rows, and an mbarrier of the warp counts their bytes. Runs start and end at multiples of 16 bytes, and continue with
// the first cell of the row beyond the periodic face.
#ifdef __CUDACC__
// The flag completes its phase after `bytes` have arrived.
__device__ __forceinline__ void expect(Flag* flag, const unsigned bytes) {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;\n}" ::"r"(address(flag)),
                 "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void copy_run(void* to, const void* from, const unsigned bytes, Flag* flag) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(bytes), "r"(address(flag))
                 : "memory");
}
// Returns true for one lane of the warp. With elect.sync the compiler issues the copies once and not lane by lane.
__device__ __forceinline__ bool chosen() {
    int found = 0;
    asm volatile("{\n.reg .pred yes;\nelect.sync _|yes, 0xffffffff;\n@yes mov.s32 %0, 1;\n}" : "+r"(found));
    return found;
}
// Orders accesses of threads to shared memory before those of bulk copies.
__device__ __forceinline__ void before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif  // the host provides these otherwise

//@begin runs
constexpr int PIECE = 2, RUN = 34;  // cells of whole 16-byte pieces; cells of a run
constexpr int SHIFT = 1;            // cells of a run before those of the warp; -1: differs from block to block
//@end runs

// A row in shared memory: for each warp, a run of each group of values.
constexpr int OF_WARP = RUN * MOMENTS * sizeof(Stored), SLOTS = OF_WARP * WARPS;  // bytes
__device__ __forceinline__ char* runs_of(void* memory, const int r, const int warp) {
    return static_cast<char*>(memory) + r * SLOTS + warp * OF_WARP;
}
// Broadcasts the value of lane 0, so that the compiler knows it to be uniform.
template <class T>
__device__ __forceinline__ T of_first(const T value) {
    return __shfl_sync(0xffffffffu, value, 0, 32);
}

// Where a lane reads its cells.
struct Slots {
    const char *group, *rest;
};
__device__ __forceinline__ Slots slots_of(void* memory, const int r, const int shift) {
    const char* const runs = runs_of(memory, r, threadIdx.y);
    const int cell = shift + threadIdx.x * CELLS;
    return {runs + cell * PACK * sizeof(Stored), runs + (RUN * GROUPS * PACK + cell * REST) * sizeof(Stored)};
}

__device__ __forceinline__ void take_cells(Cells& cells, const Slots& slots) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        cells.group[g] = *reinterpret_cast<const Group*>(slots.group + g * RUN * PACK * sizeof(Stored));
    }
    if (LEFT_OVER) cells.rest = *reinterpret_cast<const Rest*>(slots.rest);
}

// `cells` contiguous cells in memory from x on; they are the cells of a run from `first` on.
struct Part {
    int first, x, cells;
};
__device__ __forceinline__ Part part_of(const int first, const int x, const int nx) {
    return {first, x, least(RUN - first, nx - x)};
}

// Requests a part of a row. place: address of cell x; pitch: elements from one group to the next.
__device__ __forceinline__ void ask_for_cells(
    const Part& part, void* memory, const int r, const int warp, Flag* arrived, const Stored* place, const Index pitch,
    const int x) {
    const Stored* const from = place + (part.x - x) * PACK;
    char* const to = runs_of(memory, r, warp);
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        copy_run(to + (g * RUN + part.first) * PACK * sizeof(Stored), from + static_cast<unsigned long long>(pitch) * g,
                 part.cells * PACK * sizeof(Stored), arrived + warp);
    }
    if (LEFT_OVER) {
        copy_run(to + (RUN * GROUPS * PACK + part.first * REST) * sizeof(Stored),
                 from + static_cast<unsigned long long>(pitch) * GROUPS - part.x * (PACK - REST),
                 part.cells * REST * sizeof(Stored), arrived + warp);
    }
}

// Initialises the flags of all warps.
__device__ __forceinline__ Flag* lowered(void* memory) {
    Flag* const arrived = static_cast<Flag*>(memory);
    if (threadIdx.x == 0) {
        make(arrived + threadIdx.y);
        before_copies();
    }
    __syncwarp();
    return arrived;
}

//@begin variants
//@begin arrivals
    //@begin shift
    const int shift = SHIFT;
    Flag* const arrived = lowered(static_cast<char*>(behind) + ROWS * SLOTS);
    //@end shift
//@end arrivals
//@begin fetch_rows
        __syncwarp();  // all lanes have read the previous plane
        const int own = of_first(warp), begin_x = of_first(x);
        Index begins[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            //@begin place
            begins[r] = of_first(from + row[r]);
            //@end place
        }
        if (chosen()) {
            before_copies();
            expect(arrived + own, ROWS * OF_WARP);
#pragma unroll 1
            for (Part part = part_of(0, begin_x - shift, nx); part.first < RUN; part = part_of(part.first + part.cells, 0, nx)) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    ask_for_cells(part, behind, r, own, arrived, source + begins[r], pitch, begin_x);
                }
            }
        }
//@end fetch_rows
//@begin take_row
            if (PREFETCH == 2) take_cells(waiting[0], slots_of(behind, r, shift));
//@end take_row
//@begin wait_bulk
        await(arrived + warp, plane & 1);
//@end wait_bulk
//@begin last_bulk
    if (BEYOND) await(arrived + warp, planes & 1);
//@end last_bulk
//@end variants
