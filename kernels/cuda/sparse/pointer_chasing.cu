// Pointers that are found by pointers: the list has a row of one word per node for one step forward along each axis,
// and a neighbour at a corner is the next of a neighbour (Geier, Schoenherr 2017).

// The words of a row of the list at the nodes that others lead to.
__device__ __forceinline__ Words words_at(
    const Word* __restrict__ links, const int row, const int pitch, const Words& nodes) {
    const Word* const words = links + static_cast<Offset>(row) * pitch;
    Words found;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) found.of[v] = words[nodes.of[v]];
    return found;
}
