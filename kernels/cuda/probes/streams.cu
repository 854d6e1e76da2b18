// The traffic of a lattice Boltzmann kernel without its arithmetic: the ceiling of kernels with the same number of
// streams and access width. Compiler options define STREAMS (arrays read, and as many written), ACCESS (type of one
// access) and APART (__restrict__, or nothing: then all loads precede all stores).

// Copies STREAMS arrays to STREAMS others; those of one side are contiguous, each `accesses` long.
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

// Scales one array in place.
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
