// What returns over a face across x, to warps of which nothing else cuts links. The lane at the face is `here`; elsewhere
// nothing returns. Of the sums what has powers of c_x alone comes in as if a cell beyond the face had sent it straight on.
// What c_z gets comes as if from the plane below. The rest waits in shared memory, since registers are scarce.
//@begin faces
__device__ __forceinline__ Real over_x_low(
    const bool here, Real* back, Real (&pending)[PENDING], const Real (&still)[LINES], const Real (&right)[MOVERS],
    const Real (&left)[MOVERS]) {
    return 0;
}
__device__ __forceinline__ void enter_x_low(const bool here, const Real straight, Real (&right)[MOVERS]) {}
__device__ __forceinline__ Real take_x_low(Real (&current)[CURRENT], const Real* back) { return 0; }
//@end faces
