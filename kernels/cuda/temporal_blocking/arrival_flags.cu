// Warps that wait for the two that they exchange rows with, where others wait for their whole block: so that some compute
// while others exchange. Each raises a flag when it has sent; there is one for each exchange, which the neighbours have
// seen before it can be raised again.
typedef unsigned long long Flag;

#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
#define LOOK "mbarrier.try_wait.parity.shared.b64"  // waits a little before it says no
#else
#define LOOK "mbarrier.test_wait.parity.shared.b64"
#endif
__device__ __forceinline__ unsigned address(const Flag* flag) {
    return static_cast<unsigned>(__cvta_generic_to_shared(flag));
}
__device__ __forceinline__ void make(Flag* flag) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(flag)) : "memory");
}
__device__ __forceinline__ void raise(Flag* flag) {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(address(flag)) : "memory");
}
// Whether it was raised for the last time in a plane of that parity.
__device__ __forceinline__ bool raised(const Flag* flag, const unsigned parity) {
    int found;
    asm volatile("{\n.reg .pred yes;\n" LOOK " yes, [%1], %2;\nselp.b32 %0, 1, 0, yes;\n}"
                 : "=r"(found)
                 : "r"(address(flag)), "r"(parity)
                 : "memory");
    return found;
}
#endif  // elsewhere the host provides these

// A warp goes on as one: its lanes decide together.
__device__ __forceinline__ void await(const Flag* flag, const unsigned parity) {
    while (__any_sync(0xffffffffu, !raised(flag, parity))) {
    }
}
