// Asks for words of the list that a thread of a later block will read: they wait in the L2 cache then.
__device__ __forceinline__ void ask_for(const Word* links, const int row, const int pitch, const int site) {
#ifdef __CUDACC__
    const Word* const place = links + (static_cast<Offset>(row) * pitch + site);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}
