#ifdef __CUDACC__
// Copies BYTES to shared memory asynchronously (cp.async).
template <int BYTES>
__device__ __forceinline__ void copy_later(void* to, const void* from) {
    constexpr int ONCE = BYTES < 16 ? BYTES : 16;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
#pragma unroll
    for (int k = 0; k < BYTES; k += ONCE) {
        //@default l2_only
        //@end l2_only
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place + k),
                     "l"(static_cast<const char*>(from) + k), "n"(ONCE)
                     : "memory");
    }
}
__device__ __forceinline__ void copies_begin() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copies_end() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
#endif  // the host provides these otherwise

//@begin variants
//@begin l2_only
        // copies in flight through L1 must fit there, and walls leave little of shared memory to the cache
        if (ONCE == 16) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + k),
                         "l"(static_cast<const char*>(from) + k)
                         : "memory");
            continue;
        }
//@end l2_only
//@end variants
