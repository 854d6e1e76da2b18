// A column with AHEAD + 1 sets of registers: a cell is loaded AHEAD cells before its update, so that the loads of
// several cells overlap.
//
// The sets rotate by unrolling. Copying one set to another would wait for its loads.

//@begin constants
constexpr int AHEAD = 2;
//@end constants

//@begin variants
//@begin loop
    Planes ahead = planes_at(first, nz, n), present = ahead;
    Real sets[AHEAD + 1][Q][CELLS];
    // the first rounds only load, the last ones only update
#pragma unroll 1
    for (int round = first; round < end + AHEAD; round += AHEAD + 1) {
#pragma unroll
        for (int turn = 0; turn <= AHEAD; ++turn) {
            if (round + turn < end) {
                const int z = round + turn;
                const Planes& planes = ahead;
                Real(&f)[Q][CELLS] = sets[turn];
                //@begin rows
                const Index row_oo = column_o + planes.level;
                //@end rows
                //@begin read
                read_here(f[0], source + component(0, n), row_oo, lane);
                read_before(f[1], source + component(1, n), row_oo, lane);
                read_after(f[2], source + component(2, n), row_oo, lane);
                //@end read
                ahead = planes_above(ahead, z + 1, nz, n);
            }
            const int z = round + turn - AHEAD;
            if (first <= z && z < end) {
                const Planes& planes = present;
                Real(&f)[Q][CELLS] = sets[(turn + 1) % (AHEAD + 1)];
                //@begin rows
                const Index row_oo = column_o + planes.level;
                //@end rows
#pragma unroll
                for (int v = 0; v < CELLS; ++v) {
                    //@begin call
                    collide(f, v, omega);
                    //@end call
                }
                //@begin write
                write_here(f[0], target + component(0, n), row_oo, lane);
                write_here(f[1], target + component(1, n), row_oo, lane);
                write_here(f[2], target + component(2, n), row_oo, lane);
                //@end write
                present = planes_above(present, z + 1, nz, n);
            }
        }
    }
//@end loop
//@end variants
