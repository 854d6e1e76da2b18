// Rows at one face across y, which cuts all links that cross it: no link is tested individually.
enum Row { NONE, LOW, HIGH, SEVERAL };  // no face; one face across y; others, and edges

// Returns the kind of a row, the same for all cells of the warp.
__device__ __forceinline__ Row kind_of_row(const Links& links, const int r, const int z, const int ny, const int nz) {
    const Word row = links_of_row(links, r, z, ny, nz);
    if (row & 1u) return NONE;
    if (links.low || links.high) return SEVERAL;
    if (!row) return NONE;
    return WALLED_Y && row == CUT_Y_LOW ? LOW : WALLED_Y && row == CUT_Y_HIGH ? HIGH : SEVERAL;
}

//@begin faces
__device__ __forceinline__ void leave_y_low(
    Real* back, Real (&pending)[PENDING], Real& from_left, Real& from_right, const Real (&still)[LINES],
    const Real (&right)[MOVERS], const Real (&left)[MOVERS]) {}
//@end faces
