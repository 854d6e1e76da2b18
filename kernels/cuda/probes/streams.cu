// The traffic of a lattice Boltzmann kernel without its arithmetic: what a kernel with as many streams and the same
// access width can at most reach. The options define STREAMS (arrays read, and as many written), ACCESS (the type
// that one thread moves at once) and APART (__restrict__ or nothing: without it, all loads come before all stores).

// STREAMS arrays to STREAMS others; those of one side lie one after the other, `accesses` long each.
extern "C" __global__ void copy_streams(
    const ACCESS* APART source, ACCESS* APART target, const int accesses) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    ACCESS value[STREAMS];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) value[q] = source[(unsigned long long)q * accesses + at];
#pragma unroll
    for (int q = 0; q < STREAMS; ++q) target[(unsigned long long)q * accesses + at] = value[q];
}

// One array, read and written in place.
extern "C" __global__ void scale(float4* array, const float factor, const int accesses) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= accesses) return;
    float4 value = array[at];
    value.x *= factor;
    value.y *= factor;
    value.z *= factor;
    value.w *= factor;
    array[at] = value;
}
