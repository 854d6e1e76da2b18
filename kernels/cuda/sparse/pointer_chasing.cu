// Pointer chasing: the list has one word per node for one step forward along each axis, and a diagonal neighbour is the
// neighbour of a neighbour (Geier, Schoenherr 2017).

// Returns the words of a row of the list at the nodes that other words lead to.
__device__ __forceinline__ Words words_at(
    const Word* __restrict__ links, const int row, const int pitch, const Words& nodes) {
    const Word* const words = links + static_cast<Offset>(row) * pitch;
    Words found;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) found.of[v] = words[nodes.of[v]];
    return found;
}
