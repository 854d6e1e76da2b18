// What returns over a face across x, to warps of which nothing else cuts links. Of its sums those with powers of c_x alone
// come in as if a cell beyond the face had sent them straight on; the others wait in registers. The lane at the face is
// `here`; elsewhere all of them are zero.
struct Over {
    Real straight, even_y, odd_y, odd_z, mixed;
    Real before;  // what the moment of c_z^2 is owed since the plane before
};

//@begin faces
__device__ __forceinline__ Over over_x_low(
    const bool here, Real& owed, const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS]) {
    return {};
}
__device__ __forceinline__ void enter_x_low(
    const bool here, const Over& over, Real (&right)[MOVERS], Real (&pending)[PENDING]) {}
__device__ __forceinline__ void take_x_low(Real (&current)[CURRENT], Real (&m)[MOMENTS], const Over& over) {}
//@end faces
