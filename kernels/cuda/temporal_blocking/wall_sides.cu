// Warps with cells at one face across x and no other cut links. `here` marks the lane at the face; other lanes add
// zero. Sums with powers of c_x alone enter as if from a cell beyond the face, those with c_z as if from the plane
// below. The rest waits in shared memory, because registers are scarce.
//@begin faces
__device__ __forceinline__ Real over_x_low(
    const bool here, Real* back, Real (&pending)[PENDING], const Real (&still)[LINES], const Real (&right)[MOVERS],
    const Real (&left)[MOVERS]) {
    return 0;
}
__device__ __forceinline__ void enter_x_low(const bool here, const Real straight, Real (&right)[MOVERS]) {}
__device__ __forceinline__ Real take_x_low(Real (&current)[CURRENT], const Real* back) { return 0; }
//@end faces
