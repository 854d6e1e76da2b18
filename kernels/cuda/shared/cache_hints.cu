// Loads and stores of populations with cache hints, on top of the storage format in namespace `plain`.
//
// `Stored`, `Pack` and `Vector` are places in memory here. Widening or unpacking loads one and assignment stores one,
// so the code of a step is the same with and without hints.

//@begin hints
#define LOAD "ld.global.nc.L1::no_allocate.L2::128B"
#define STORE "st.global.cs"
#define IN_PLACE 0
//@end hints

#ifdef __CUDACC__
#if IN_PLACE  // in place, values are stored after they were loaded: no load may move past a store
#define FETCH(...) asm volatile(__VA_ARGS__ : "memory")
#else
#define FETCH(...) asm(__VA_ARGS__)
#endif
#define LEAVE(...) asm volatile(__VA_ARGS__ : "memory")

__device__ __forceinline__ void fetch(unsigned short& to, const void* from) {
    FETCH(LOAD ".u16 %0, [%1];" : "=h"(to) : "l"(from));
}
__device__ __forceinline__ void fetch(unsigned& to, const void* from) {
    FETCH(LOAD ".u32 %0, [%1];" : "=r"(to) : "l"(from));
}
__device__ __forceinline__ void fetch(uint2& to, const void* from) {
    FETCH(LOAD ".v2.u32 {%0, %1}, [%2];" : "=r"(to.x), "=r"(to.y) : "l"(from));
}
__device__ __forceinline__ void fetch(uint4& to, const void* from) {
    FETCH(LOAD ".v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(from));
}
__device__ __forceinline__ void leave(const unsigned short from, void* to) {
    LEAVE(STORE ".u16 [%0], %1;" ::"l"(to), "h"(from));
}
__device__ __forceinline__ void leave(const unsigned from, void* to) {
    LEAVE(STORE ".u32 [%0], %1;" ::"l"(to), "r"(from));
}
__device__ __forceinline__ void leave(const uint2 from, void* to) {
    LEAVE(STORE ".v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(from.x), "r"(from.y));
}
__device__ __forceinline__ void leave(const uint4 from, void* to) {
    LEAVE(STORE ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from.x), "r"(from.y), "r"(from.z), "r"(from.w));
}
#endif  // the host provides these otherwise

// Registers that hold BYTES.
template <int BYTES>
struct Registers;
template <>
struct Registers<2> {
    typedef unsigned short Type;
};
template <>
struct Registers<4> {
    typedef unsigned Type;
};
template <>
struct Registers<8> {
    typedef uint2 Type;
};
template <>
struct Registers<16> {
    typedef uint4 Type;
};

template <class Value>
__device__ __forceinline__ Value loaded(const Value& place) {
    typename Registers<sizeof(Value)>::Type bits;
    fetch(bits, &place);
    Value value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ void store(const Value& value, void* place) {
    typename Registers<sizeof(Value)>::Type bits;
    memcpy(&bits, &value, sizeof bits);
    leave(bits, place);
}

struct Stored {
    plain::Stored bits;

    Stored() = default;
    __device__ Stored(const plain::Stored value) : bits(value) {}
    __device__ __forceinline__ void operator=(const plain::Stored value) { store(value, &bits); }
};
struct Pack {
    plain::Pack bits;
};
struct Vector {
    plain::Vector bits;
};

__device__ __forceinline__ Real widen(const Stored& place) { return plain::widen(loaded(place.bits)); }
__device__ __forceinline__ plain::Stored narrow(const Real value) { return plain::narrow(value); }
__device__ __forceinline__ void unpack(Real (&f)[CELLS], const Pack& place) { plain::unpack(f, loaded(place.bits)); }
__device__ __forceinline__ Pack pack(const Real (&f)[CELLS]) { return {plain::pack(f)}; }
__device__ __forceinline__ void __stwb(Vector* place, const Vector& value) { store(value.bits, place); }

template <int SIZE>
__device__ __forceinline__ void write_part(const Real* f, Stored* place) {
    struct alignas(SIZE * sizeof(Stored)) Part {
        plain::Stored value[SIZE];
    } part;
    plain::write_part<SIZE>(f, part.value);
    store(part, place);
}
