// Populations stored as scaled IEEE halves, converted by the hardware, in pairs if they come in vectors. The scale is
// applied when fields are initialised; steps do not rescale.

typedef unsigned short Stored;
//@begin vector
typedef uint4 Vector;  // of CELLS values
//@end vector

#ifdef __CUDACC__
__device__ __forceinline__ float half_to_float(const unsigned short half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
__device__ __forceinline__ unsigned short float_to_half(const float value) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}
__device__ __forceinline__ unsigned floats_to_halves(const float low, const float high) {
    unsigned halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
}
#endif  // the host provides these otherwise

struct alignas(CELLS > 1 ? 2 * CELLS : 4) Pack {
    unsigned pair[CELLS > 1 ? CELLS / 2 : 1];
};

__device__ __forceinline__ Real widen(const Stored value) { return half_to_float(value); }
__device__ __forceinline__ Stored narrow(const Real value) { return float_to_half(static_cast<float>(value)); }

__device__ __forceinline__ void unpack(Real (&f)[CELLS], const Pack packed) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen(static_cast<Stored>(packed.pair[v / 2] >> (v % 2 ? 16 : 0)));
}

__device__ __forceinline__ Pack pack(const Real (&f)[CELLS]) {
    Pack packed;
#pragma unroll
    for (int v = 0; v + 1 < CELLS; v += 2) {
        packed.pair[v / 2] = floats_to_halves(static_cast<float>(f[v]), static_cast<float>(f[v + 1]));
    }
    return packed;
}

// Stores SIZE cells, a power of two, to a place of that alignment.
template <int SIZE>
__device__ __forceinline__ void write_part(const Real* f, Stored* place) {
    if constexpr (SIZE == 1) {
        *place = narrow(f[0]);
    } else {
        struct alignas(2 * SIZE) Part {
            unsigned pair[SIZE / 2];
        } part;
#pragma unroll
        for (int v = 0; v < SIZE; v += 2) {
            part.pair[v / 2] = floats_to_halves(static_cast<float>(f[v]), static_cast<float>(f[v + 1]));
        }
        *reinterpret_cast<Part*>(place) = part;
    }
}
