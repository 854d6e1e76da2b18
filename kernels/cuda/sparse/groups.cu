// One pass over fluid sites: a thread updates MARCH groups of sites, each a block further on, and loads their
// list words AHEAD groups before their populations. So no load of a population waits for the word that it depends on.
//
// The sets of words rotate by unrolling. Copying one set to another would wait for its loads.

//@begin constants
constexpr int MARCH = 4, AHEAD = 1;
//@end constants

//@default helpers
//@end helpers

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(BLOCK) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const Word* __restrict__ links, const int sites,
    const int nodes, const Real omega)
{
//@end signature
    struct Kept {
        //@begin kept
        Words to_1, to_2;
        //@end kept
    };
    //@default count
    //@end count
    const int first = CELLS * (blockIdx.x * (BLOCK * MARCH) + threadIdx.x);
    const Extents n = {static_cast<Index>(nodes), 1, 1};
    //@default loop
    Kept sets[AHEAD + 1];
    // the first rounds only load words, the last ones only update
#pragma unroll 1
    for (int round = 0; round < MARCH + AHEAD; round += AHEAD + 1) {
#pragma unroll
        for (int turn = 0; turn <= AHEAD; ++turn) {
            const int next = round + turn, present = next - AHEAD;
            if (next < MARCH && first + next * (BLOCK * CELLS) < sites) {
                const int site = first + next * (BLOCK * CELLS);
                //@begin words
                const Words to_1 = words(links, 0, sites, site);
                const Words to_2 = words(links, 1, sites, site);
                //@end words
                //@begin keep
                sets[turn] = {to_1, to_2};
                //@end keep
            }
            if (0 <= present && present < MARCH && first + present * (BLOCK * CELLS) < sites) {
                const int site = first + present * (BLOCK * CELLS);
                const Index at = along_x(site, n);
                const Kept& kept = sets[(turn + 1) % (AHEAD + 1)];
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
    }
    //@end loop
}
//@end entry
