// Copies to shared memory that are under way while the thread goes on. A thread takes only what it has copied itself, so
// that it waits for no others.

//@begin copies
#include "async_copies.cu"
//@end copies

#ifdef __CUDACC__
// Waits for all groups of copies but the last LEFT ones.
template <int LEFT>
__device__ __forceinline__ void copies_left() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif  // elsewhere the host provides these

extern __shared__ uint4 shared[];
