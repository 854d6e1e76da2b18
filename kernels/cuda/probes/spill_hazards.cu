// Micro-benchmark of local words that are stored while a load of the same word is in flight. Compiler options define
// LOCAL (words of local memory of a thread), TOGETHER (words per turn, far from each other) and OVERTAKES (whether a
// word is stored before, or after, its load is waited for).

__device__ __forceinline__ float loaded(const unsigned long long place) {
    float value;
    asm volatile("ld.local.f32 %0, [%1];" : "=f"(value) : "l"(place) : "memory");
    return value;
}
__device__ __forceinline__ void store(const unsigned long long place, const float value) {
    asm volatile("st.local.f32 [%0], %1;" ::"l"(place), "f"(value) : "memory");
}
// Uses a value, in program order: later instructions wait for it.
__device__ __forceinline__ void use(float& sum, const float value) {
    asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(sum) : "f"(value));
}

extern "C" __global__ void overtake(float* target, const int turns) {
    constexpr int APART = LOCAL / TOGETHER;
    float kept[LOCAL];
#pragma unroll 1
    for (int n = 0; n < LOCAL; ++n) kept[n] = threadIdx.x + n;
    unsigned long long first;
    asm volatile("cvta.to.local.u64 %0, %1;" : "=l"(first) : "l"(reinterpret_cast<unsigned long long>(kept)));
    float sum = threadIdx.x, value[TOGETHER];
    int at = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            value[k] = loaded(first + 4 * (at + k * APART));
            if (OVERTAKES) store(first + 4 * (at + k * APART), sum);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) use(sum, value[k]);
        if (!OVERTAKES) {
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) store(first + 4 * (at + k * APART), sum);
        }
        at = at + 1 < APART ? at + 1 : 0;
    }
    target[blockIdx.x * blockDim.x + threadIdx.x] = sum + kept[threadIdx.x % LOCAL];
}
