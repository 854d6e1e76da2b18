// Populations stored in an IEEE type of the language.

//@begin stored
typedef float Stored;
typedef float4 Vector;  // of CELLS values
//@end stored

struct alignas(CELLS * sizeof(Stored)) Pack {
    Stored value[CELLS];
};

__device__ __forceinline__ Real widen(const Stored value) { return value; }
__device__ __forceinline__ Stored narrow(const Real value) { return static_cast<Stored>(value); }

__device__ __forceinline__ void unpack(Real (&f)[CELLS], const Pack packed) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen(packed.value[v]);
}

__device__ __forceinline__ Pack pack(const Real (&f)[CELLS]) {
    Pack packed;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) packed.value[v] = narrow(f[v]);
    return packed;
}

// Stores SIZE cells, a power of two, to a place of that alignment.
template <int SIZE>
__device__ __forceinline__ void write_part(const Real* f, Stored* place) {
    struct alignas(SIZE * sizeof(Stored)) Part {
        Stored value[SIZE];
    } part;
#pragma unroll
    for (int v = 0; v < SIZE; ++v) part.value[v] = narrow(f[v]);
    *reinterpret_cast<Part*>(place) = part;
}
