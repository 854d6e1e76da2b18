// Micro-benchmarks of instruction issue and of grid-wide barriers. Compiler options define: KIND, 0 multiply-add, 1
// conversion to 16 bits and back, 2 shuffle, 3 shared memory; Number, the type; CHAINS of independent instructions;
// LENGTH, instructions of each between two barriers of a block; MEETS, whether there are barriers.

__device__ __forceinline__ float there_and_back(const float value) {
    unsigned short half;
    float back;
    asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    asm volatile("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(half));
    return back;
}
__device__ __forceinline__ double there_and_back(const double value) { return value; }

extern "C" __global__ void __launch_bounds__(1024) stages(Number* target, const Number factor, const int turns) {
    __shared__ Number handed[2][1024];
    Number value[CHAINS];
    for (int c = 0; c < CHAINS; ++c) value[c] = static_cast<Number>(threadIdx.x + c);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int n = 0; n < LENGTH; ++n) {
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) {
                if (KIND == 0) value[c] = value[c] * factor + factor;
                if (KIND == 1) value[c] = there_and_back(value[c]);
                if (KIND == 2) value[c] = __shfl_up_sync(0xffffffffu, value[c], 1);
                if (KIND == 3) {
                    volatile Number* const row = handed[c % 2];
                    row[threadIdx.x] = value[c];
                    value[c] = row[threadIdx.x];
                }
            }
        }
        if (MEETS) {
            handed[turn % 2][threadIdx.x] = value[0];
            __syncthreads();
            value[0] += handed[turn % 2][(threadIdx.x + 32) % blockDim.x];
        }
    }
    Number sum = 0;
    for (int c = 0; c < CHAINS; ++c) sum += value[c];
    target[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Repeats a grid-wide barrier; in between each thread sends a word and reads that of the next block.
extern "C" __global__ void meet(unsigned* words, unsigned* arrivals, const int turns) {
    const unsigned block = blockIdx.x, next = (block + 1) % gridDim.x, threads = blockDim.x;
    unsigned sum = threadIdx.x;
    for (int turn = 0; turn < turns; ++turn) {
        unsigned* const sent = words + (turn % 2) * gridDim.x * threads;
        asm volatile("st.global.u32 [%0], %1;" ::"l"(sent + block * threads + threadIdx.x), "r"(sum) : "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
            const unsigned wanted = (turn + 1) * gridDim.x;
            unsigned seen;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals) : "memory");
            } while (static_cast<int>(seen - wanted) < 0);
        }
        __syncthreads();
        unsigned got;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(got) : "l"(sent + next * threads + threadIdx.x) : "memory");
        sum += got;
    }
    // the last block to leave resets the count
    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(arrivals + 1, gridDim.x - 1) == gridDim.x - 1) arrivals[0] = 0;
    words[2 * gridDim.x * threads + block * threads + threadIdx.x] = sum;
}
