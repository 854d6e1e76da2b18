// What returns to rows of which one face alone cuts links, all that cross it: nothing is asked of single links.
enum Row { OPEN, SIDES, LOW, HIGH, MIXED };  // no face; those across x; one across y; others, and where faces meet

// Of all cells of the warp in a row.
__device__ __forceinline__ Row kind_of_row(const Links& links, const int r, const int z, const int ny, const int nz) {
    const Word row = links_of_row(links, r, z, ny, nz);
    const bool sides = links.low || links.high;
    if (!row) return sides ? SIDES : OPEN;
    if (row & 1u) return OPEN;
    return WALLED_Y && !sides && row == CUT_Y_LOW ? LOW : WALLED_Y && !sides && row == CUT_Y_HIGH ? HIGH : MIXED;
}

//@begin faces
constexpr int FACE = 5;  // sums of what returns over a face
__device__ __forceinline__ void leave_x_low(
    Real* back, const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS]) {}
__device__ __forceinline__ Real take_x_low(Real (&current)[CURRENT], const Real* back) { return 0; }
//@end faces
