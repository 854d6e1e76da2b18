// Asynchronous copies to shared memory, waited for by group. A thread takes only what it copied itself, so no
// barrier is needed.

//@begin copies
#include "async_copies.cu"
//@end copies

#ifdef __CUDACC__
// Waits for all but the last LEFT groups of copies.
template <int LEFT>
__device__ __forceinline__ void copies_left() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif  // the host provides these otherwise

extern __shared__ uint4 shared[];
