// Planes that bulk copies bring to shared memory: one lane of a warp asks for the runs in which all lies that its lanes
// take of their rows, and a flag of the warp says that all bytes are there. Runs begin and end with whole pieces of 16
// bytes, and go on with the first cell of the row beyond the periodic face.
#ifdef __CUDACC__
// Raises the flag when so many bytes have come.
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
// Of one lane of the warp: a compiler that knows it to be one alone asks once, and not lane by lane.
__device__ __forceinline__ bool chosen() {
    int found = 0;
    asm volatile("{\n.reg .pred yes;\nelect.sync _|yes, 0xffffffff;\n@yes mov.s32 %0, 1;\n}" : "+r"(found));
    return found;
}
// What threads have done in shared memory comes before what bulk copies do there.
__device__ __forceinline__ void before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#endif  // elsewhere the host provides these

//@begin runs
constexpr int PIECE = 2, RUN = 34;  // cells of whole pieces; cells of a run
constexpr int SHIFT = 1;            // cells of a run before those of the warp, -1: other ones in each block
//@end runs

// Places of a row in shared memory: of each warp a run of each group.
constexpr int OF_WARP = RUN * MOMENTS * sizeof(Stored), SLOTS = OF_WARP * WARPS;  // bytes
__device__ __forceinline__ char* runs_of(void* memory, const int r, const int warp) {
    return static_cast<char*>(memory) + r * SLOTS + warp * OF_WARP;
}
// What the first lane of a warp has: a compiler that knows all lanes to have it works with it once.
template <class T>
__device__ __forceinline__ T of_first(const T value) {
    return __shfl_sync(0xffffffffu, value, 0, 32);
}

// Of a lane.
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

// What lies side by side in memory: so many cells from x on, which are the cells of a run from `first` on.
struct Part {
    int first, x, cells;
};
__device__ __forceinline__ Part part_of(const int first, const int x, const int nx) {
    return {first, x, least(RUN - first, nx - x)};
}

// Asks for a part of a row; place: of the cell x; pitch: elements from a group to the next one.
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

// Flags of all warps, lowered.
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
        __syncwarp();  // all lanes have taken what is there
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
