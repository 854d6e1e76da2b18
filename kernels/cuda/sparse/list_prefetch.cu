// Prefetches a word of the list, which a later block will load, into the L2 cache.
__device__ __forceinline__ void ask_for(const Word* links, const int row, const int pitch, const int site) {
#ifdef __CUDACC__
    const Word* const place = links + (static_cast<Offset>(row) * pitch + site);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}
