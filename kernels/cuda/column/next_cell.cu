// A column with two sets of registers: the next cell is loaded before the present one is collided and stored, so that
// its loads overlap.

//@begin variants
//@begin loop
    Planes ahead = planes_at(first, nz, n), planes = ahead;
    Real next[Q][CELLS], f[Q][CELLS];
    // the first iteration only loads, the last one only updates
#pragma unroll 1
    for (int next_z = first; next_z <= end; ++next_z) {
        if (next_z < end) {
            const int z = next_z;
            const Planes& planes = ahead;
            Real(&f)[Q][CELLS] = next;
            //@begin rows
            const Index row_oo = column_o + planes.level;
            //@end rows
            //@begin read
            read_here(f[0], source + component(0, n), row_oo, lane);
            read_before(f[1], source + component(1, n), row_oo, lane);
            read_after(f[2], source + component(2, n), row_oo, lane);
            //@end read
        }
        if (next_z > first) {
            const int z = next_z - 1;
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
        }
#pragma unroll
        for (int i = 0; i < Q; ++i) {
#pragma unroll
            for (int v = 0; v < CELLS; ++v) f[i][v] = next[i][v];
        }
        planes = ahead;
        ahead = planes_above(ahead, next_z + 1, nz, n);
    }
//@end loop
//@end variants
