// Populations stored in a 16-bit format that has no C type, converted in pairs if they come in vectors. The functions
// decoded, encoded and encoded_pair define the format.

typedef unsigned short Stored;
//@begin vector
typedef uint4 Vector;  // of CELLS values
//@end vector

//@begin conversion
#include "bf16.cu"
//@end conversion

struct alignas(CELLS > 1 ? 2 * CELLS : 4) Pack {
    unsigned pair[CELLS > 1 ? CELLS / 2 : 1];
};

__device__ __forceinline__ Real widen(const Stored value) { return decoded(value); }
__device__ __forceinline__ Stored narrow(const Real value) { return encoded(static_cast<float>(value)); }

__device__ __forceinline__ void unpack(Real (&f)[CELLS], const Pack packed) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen(static_cast<Stored>(packed.pair[v / 2] >> (v % 2 ? 16 : 0)));
}

__device__ __forceinline__ Pack pack(const Real (&f)[CELLS]) {
    Pack packed;
#pragma unroll
    for (int v = 0; v + 1 < CELLS; v += 2) {
        packed.pair[v / 2] = encoded_pair(static_cast<float>(f[v]), static_cast<float>(f[v + 1]));
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
            part.pair[v / 2] = encoded_pair(static_cast<float>(f[v]), static_cast<float>(f[v + 1]));
        }
        *reinterpret_cast<Part*>(place) = part;
    }
}
