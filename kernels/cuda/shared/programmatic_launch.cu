// Programmatic dependent launch: blocks start when those of the previous launch retire, and wait here until all that
// it wrote is visible.

__device__ __forceinline__ void begin_early() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
