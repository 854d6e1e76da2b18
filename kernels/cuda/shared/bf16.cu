// bfloat16 is the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN.
__device__ __forceinline__ float decoded(const unsigned short code) {
    return __uint_as_float(static_cast<unsigned>(code) << 16);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned short encoded(const float value) {
    unsigned short code;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(value));
    return code;
}
__device__ __forceinline__ unsigned encoded_pair(const float low, const float high) {
    unsigned codes;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(codes) : "f"(high), "f"(low));
    return codes;
}
#else
__device__ __forceinline__ unsigned short encoded(const float value) {
    const unsigned bits = __float_as_uint(value);
    const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
    return number ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : 0x7fffu;
}
__device__ __forceinline__ unsigned encoded_pair(const float low, const float high) {
    return encoded(low) | static_cast<unsigned>(encoded(high)) << 16;
}
#endif
