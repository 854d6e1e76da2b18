// Several moving walls: returns the words of moving links for the cells at wall `number`, and zeros for others.
__device__ __forceinline__ Words of_wall(
    const Words& moving, const Word (&types)[CELLS], const int shift, const Word mask, const Word number) {
    Words made;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) made.of[v] = (types[v] >> shift & mask) == number ? moving.of[v] : 0u;
    return made;
}
