// Entries without reads take the first rows only, which stay in the L1 cache; entries without writes store nothing.
//@begin no_reads_open
//@begin fetch_row
            fetch_cells(waiting[PREFETCH == 2 ? 0 : r], slots_of(behind, r), source + (along_y(next_z + r & 3, n) + CELLS * int(threadIdx.x) * PACK), pitch, CELLS * int(threadIdx.x));
//@end fetch_row
//@end no_reads_open
//@begin no_reads_walls
//@end no_reads_walls
//@begin no_reads_flat
//@begin fetch_rows
        fetch_cells(waiting, slots_of(behind, 0), source + (along_y(next_y & 3, n) + CELLS * int(threadIdx.x) * PACK), pitch, CELLS * int(threadIdx.x));
//@end fetch_rows
//@end no_reads_flat
//@begin no_writes_open
//@begin store_row
                if (stored[r]) if (never(m[r])) store_cells(m[r], target + (to + row[r]), pitch, x);
//@end store_row
//@end no_writes_open
//@begin no_writes_walls
//@begin store_row
                if (at[r] != NOWHERE) if (never(m[r])) store_cells(m[r], target + (to + at[r]), pitch, x);
//@end store_row
//@end no_writes_walls
//@begin no_writes_flat
//@begin store_row
            if (stored) if (never(m)) store_cells(m, target + (along_y(y, n) + x * PACK), pitch, x);
//@end store_row
//@end no_writes_flat
