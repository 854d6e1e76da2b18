// Micro-benchmark of blocks whose warps exchange words between stages, as temporal blocking does. Option MEETS: what a
// warp waits for before it reads the words: 0 nothing, 1 its block, 2 the warps beside it (compute capability 8.0).

typedef unsigned long long Flag;

// `aside` is 0, which the assembler cannot know; values that depend on it stay in registers.
__device__ __forceinline__ unsigned address(const void* place, const unsigned aside) {
    return static_cast<unsigned>(__cvta_generic_to_shared(place)) + aside;
}
__device__ __forceinline__ float4 take(const unsigned at) {
    float4 four;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(at)
                 : "memory");
    return four;
}
__device__ __forceinline__ void put(const unsigned at, const float* value) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(value[0]), "f"(value[1]), "f"(value[2]),
                 "f"(value[3])
                 : "memory");
}
__device__ __forceinline__ void raise(const unsigned flag) {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(flag) : "memory");
}
#if __CUDA_ARCH__ >= 900
#define LOOK "mbarrier.try_wait.parity.shared.b64"
#else
#define LOOK "mbarrier.test_wait.parity.shared.b64"
#endif
__device__ __forceinline__ bool raised(const unsigned flag, const unsigned parity) {
    int found;
    asm volatile("{\n.reg .pred yes;\n" LOOK " yes, [%1], %2;\nselp.b32 %0, 1, 0, yes;\n}"
                 : "=r"(found)
                 : "r"(flag), "r"(parity)
                 : "memory");
    return found;
}
__device__ __forceinline__ void await(const unsigned flag, const unsigned parity) {
    while (__any_sync(0xffffffffu, !raised(flag, parity))) {
    }
}

constexpr int MOST = 512, ROOM = MOST + 64;  // threads; and a warp more on either side

extern "C" __global__ void __launch_bounds__(MOST) exchange(
    float* target, const int* nothing, const float factor, const int turns, const int length) {
    __shared__ float4 sent[4 * ROOM];  // up, then down, each for alternating turns
    __shared__ Flag flags[2][MOST / 32];
    const unsigned aside = nothing[0];
    const int thread = threadIdx.x + aside, lane = thread % 32 + aside, warp = thread / 32 + aside;
    const int warps = blockDim.x / 32 + aside, chunks = length / 32 + aside;
    const float scale = factor + aside;
    for (int k = 0; MEETS == 2 && lane == 0 && k < 2; ++k) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&flags[k][warp], 0)) : "memory");
    }
    for (int i = thread; i < 4 * ROOM; i += blockDim.x) sent[i] = {0, 0, 0, 0};
    __syncthreads();
    // values are stored a warp further up, or down, than they are loaded
    constexpr unsigned WARP = 32 * sizeof(float4), OTHER = ROOM * sizeof(float4), BELOW = OTHER * 2;
    const unsigned first = address(&sent[thread], aside), own = address(&flags[0][warp], aside);
    float value[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) value[c] = thread + c;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        const unsigned here = first + (turn % 2 ? OTHER : 0), before = first + (turn % 2 ? 0 : OTHER);
        const float4 from_below = take(before), from_above = take(before + BELOW + 2 * WARP);
        value[0] += from_below.x, value[1] += from_below.y, value[2] += from_below.z, value[3] += from_below.w;
        value[4] += from_above.x, value[5] += from_above.y, value[6] += from_above.z, value[7] += from_above.w;
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
            for (int k = 0; k < 32; ++k) value[k % 8] = value[k % 8] * scale + scale;
        }
        put(here + WARP, value);
        put(here + BELOW + WARP, value + 4);
        if (MEETS == 1) __syncthreads();
        if (MEETS == 2) {
            const unsigned flag = own + (turn % 2 ? MOST / 32 * sizeof(Flag) : 0), parity = turn / 2 & 1;
            __syncwarp();
            if (lane == 0) raise(flag);
            await(flag - (warp > 0 ? sizeof(Flag) : 0), parity);
            await(flag + (warp < warps - 1 ? sizeof(Flag) : 0), parity);
        }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += value[c];
    target[blockIdx.x * blockDim.x + thread] = sum;
}
