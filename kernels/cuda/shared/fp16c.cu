// FP16C: a sign bit, 4 exponent bits (bias 15) and 11 mantissa bits; neither infinity nor NaN. Rounds to nearest, ties
// to even, and saturates. Source: Lehmann et al. 2022 (arXiv 2112.08926).
//
// To decode, the bits of a code move to their places in a float and 112 is added to the exponent. A subnormal code
// (exponent 0) gets 113, which adds an implicit one of 2^-14; that is subtracted again.
__device__ __forceinline__ float decoded(const unsigned short code) {
    const unsigned rest = (code & 0x7fffu) << 12;
    const bool subnormal = rest < 0x00800000u;
    const float raised = __uint_as_float(rest + (subnormal ? 0x38800000u : 0x38000000u));
    const float magnitude = subnormal ? raised - 0x1p-14f : raised;
    return __uint_as_float(__float_as_uint(magnitude) | (code & 0x8000u) << 16);
}

// Below 2^-14, adding 0.25 rounds to the nearest multiple of 2^-25, in the last bits.
__device__ __forceinline__ unsigned short encoded(const float value) {
    const unsigned bits = __float_as_uint(value), rest = bits & 0x7fffffffu;
    const unsigned normal = (rest - 0x38000000u + 0x7ffu + (rest >> 12 & 1u)) >> 12;
    const unsigned subnormal = __float_as_uint(__uint_as_float(rest) + 0.25f) - 0x3e800000u;
    const unsigned code = rest < 0x38800000u ? subnormal : normal < 0x7fffu ? normal : 0x7fffu;
    return code | (bits >> 16 & 0x8000u);
}
__device__ __forceinline__ unsigned encoded_pair(const float low, const float high) {
    return encoded(low) | static_cast<unsigned>(encoded(high)) << 16;
}
