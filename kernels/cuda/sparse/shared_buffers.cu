// Groups of sites whose list words are copied to shared memory asynchronously, AHEAD groups before their update; there
// they occupy no registers.
//
// Words that are found through other words are loaded when the group is updated.

//@begin copies
#include "../shared/copy_groups.cu"
//@end copies

// Copies the words of the thread's sites in a row of the list.
__device__ __forceinline__ void fetch_words(
    Words* to, const Word* __restrict__ links, const int row, const int pitch, const int site) {
    copy_later<sizeof(Words)>(to, links + (static_cast<Offset>(row) * pitch + site));
}

//@begin variants
//@begin count
    //@begin words_copied
    constexpr int COPIED = 2;
    //@end words_copied
//@end count
//@begin loop
    // the first rounds only copy words, the last ones only update
#pragma unroll 1
    for (int next = 0; next < MARCH + AHEAD; ++next) {
        Words* const waiting = reinterpret_cast<Words*>(shared) + (next % AHEAD * (COPIED * BLOCK) + threadIdx.x);
        const int present = next - AHEAD;
        const bool due = 0 <= present && first + present * (BLOCK * CELLS) < sites;
        Kept kept;
        copies_left<AHEAD - 1>();
        if (due) {
            //@begin words
            const Words to_1 = waiting[0 * BLOCK];
            const Words to_2 = waiting[1 * BLOCK];
            //@end words
            //@begin keep
            kept = {to_1, to_2};
            //@end keep
        }
        if (next < MARCH && first + next * (BLOCK * CELLS) < sites) {
            const int site = first + next * (BLOCK * CELLS);
            //@begin fetch
            fetch_words(waiting + 0 * BLOCK, links, 0, sites, site);
            fetch_words(waiting + 1 * BLOCK, links, 1, sites, site);
            //@end fetch
        }
        copies_begin();  // one group per round, so that groups can be counted
        if (due) {
            const int site = first + present * (BLOCK * CELLS);
            const Index at = along_x(site, n);
            //@begin take
            const Words& to_1 = kept.to_1;
            const Words& to_2 = kept.to_2;
            //@end take

            Real f[Q][CELLS];
            //@begin read
            read_here(f[0], source + component(0, n), at);
            read_node(f[1], source + component(1, n), source + component(2, n), to_2, n, to_2, CUT);
            read_node(f[2], source + component(2, n), source + component(1, n), to_1, n, to_1, CUT);
            //@end read
#pragma unroll
            for (int v = 0; v < CELLS; ++v) {
                //@begin call
                collide(f, v, omega);
                //@end call
            }
            //@begin write
            write_here(f[0], target + component(0, n), at);
            write_here(f[1], target + component(1, n), at);
            write_here(f[2], target + component(2, n), at);
            //@end write
        }
    }
//@end loop
//@end variants
