// Launches that begin before the one that they depend on has ended: blocks come to the multiprocessors as those of the
// launch before go, and wait there until all that it has written can be read.

__device__ __forceinline__ void begin_early() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
