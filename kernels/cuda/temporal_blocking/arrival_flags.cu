// Flags in shared memory (mbarrier) by which a warp learns that rows of its neighbours, or bulk copies, have arrived.
typedef unsigned long long Flag;

#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
#define LOOK "mbarrier.try_wait.parity.shared.b64"  // suspends the thread for a while
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
// Returns whether the flag completed its phase of that parity.
__device__ __forceinline__ bool raised(const Flag* flag, const unsigned parity) {
    int found;
    asm volatile("{\n.reg .pred yes;\n" LOOK " yes, [%1], %2;\nselp.b32 %0, 1, 0, yes;\n}"
                 : "=r"(found)
                 : "r"(address(flag)), "r"(parity)
                 : "memory");
    return found;
}
#endif  // the host provides these otherwise

// Waits until all lanes of the warp have seen the flag.
__device__ __forceinline__ void await(const Flag* flag, const unsigned parity) {
    while (__any_sync(0xffffffffu, !raised(flag, parity))) {
    }
}
