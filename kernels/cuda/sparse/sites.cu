//@begin title
// Lines between //@begin and //@end are an example (rest and +-x, two lattices, pull, walls), so that this file
// compiles as it is. For a configuration, regions are printed from the tables of its scheme, layout, lattice and
// case, and the entry is printed once per pass of the scheme.
//@end title
// One pass of a propagation scheme over the fluid sites of a domain; every thread updates CELLS consecutive sites.
//
// Sites are numbered in one dimension, and site n is node n. An index list leads to places in other nodes: rows of one
// word per site, with the number of a node and two flags above it, or a mask of flags (see
// lbmtune.catalogue.sparse.index_list). Places in the node itself are accessed as vectors.

//@begin constants
typedef float Real;          // arithmetic
typedef unsigned int Index;  // elements of one component
constexpr int Q = 3;
constexpr int CELLS = 2;
constexpr int BLOCK = 128;
constexpr Real unit = 1;  // density 1 as stored
//@end constants

typedef unsigned long long Offset;  // elements of a whole buffer
typedef unsigned int Word;          // word of the index list

constexpr int CUT = 31, MOVING = 30;  // flag bits of a word that leads to a node
constexpr Word NODE = (1u << MOVING) - 1;

//@begin storage
#include "../shared/storage_plain.cu"
//@end storage

struct Extents {
    Index x, y, z;
};

//@begin layout
__device__ __forceinline__ Index along_x(const Index x, const Extents& n) { return x; }
__device__ __forceinline__ Offset component(const Offset q, const Extents& n) { return q * n.x; }
//@end layout

struct alignas(sizeof(Word) * (CELLS < 4 ? CELLS : 4)) Words {
    Word of[CELLS];
};

// Returns the words of the thread's sites in a row of the list.
__device__ __forceinline__ Words words(const Word* __restrict__ links, const int row, const int sites, const int site) {
    return *reinterpret_cast<const Words*>(links + (static_cast<Offset>(row) * sites + site));
}

__device__ __forceinline__ bool flag(const Words& words, const int bit, const int v) {
    return words.of[v] >> bit & 1;
}

__device__ __forceinline__ bool any(const Words& words, const int bit) {
    Word all = 0;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) all |= words.of[v];
    return all >> bit & 1;
}

__device__ __forceinline__ Index element(const Words& nodes, const int v, const Extents& n) {
    return along_x(nodes.of[v] & NODE, n);
}

__device__ __forceinline__ void read_here(Real (&f)[CELLS], const Stored* slot, const Index at) {
    if (CELLS == 1) {
        f[0] = widen(slot[at]);
    } else {
        unpack(f, *reinterpret_cast<const Pack*>(slot + at));
    }
}

// A cut link has its place in the same node, in another slot.
__device__ __forceinline__ void read_here(
    Real (&f)[CELLS], const Stored* slot, const Stored* cut, const Index at, const Words& flags, const int bit) {
    if (CELLS > 1 && !any(flags, bit)) {
        read_here(f, slot, at);
        return;
    }
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen((flag(flags, bit, v) ? cut : slot)[at + v]);
}

__device__ __forceinline__ void read_node(
    Real (&f)[CELLS], const Stored* slot, const Words& nodes, const Extents& n) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen(slot[element(nodes, v, n)]);
}

__device__ __forceinline__ void read_node(
    Real (&f)[CELLS], const Stored* slot, const Stored* cut, const Words& nodes, const Extents& n, const Words& flags,
    const int bit) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] = widen((flag(flags, bit, v) ? cut : slot)[element(nodes, v, n)]);
}

__device__ __forceinline__ void write_here(const Real (&f)[CELLS], Stored* slot, const Index at) {
    if (CELLS == 1) {
        slot[at] = narrow(f[0]);
    } else {
        // the compiler may split an ordinary store
        const Pack packed = pack(f);
        Vector vector;
        memcpy(&vector, &packed, sizeof vector);
        __stwb(reinterpret_cast<Vector*>(slot + at), vector);
    }
}

__device__ __forceinline__ void write_here(
    const Real (&f)[CELLS], Stored* slot, Stored* cut, const Index at, const Words& flags, const int bit) {
    if (CELLS > 1 && !any(flags, bit)) {
        write_here(f, slot, at);
        return;
    }
#pragma unroll
    for (int v = 0; v < CELLS; ++v) (flag(flags, bit, v) ? cut : slot)[at + v] = narrow(f[v]);
}

__device__ __forceinline__ void write_node(
    const Real (&f)[CELLS], Stored* slot, const Words& nodes, const Extents& n) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) slot[element(nodes, v, n)] = narrow(f[v]);
}

__device__ __forceinline__ void write_node(
    const Real (&f)[CELLS], Stored* slot, Stored* cut, const Words& nodes, const Extents& n, const Words& flags,
    const int bit) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) (flag(flags, bit, v) ? cut : slot)[element(nodes, v, n)] = narrow(f[v]);
}

// Adds the momentum of a moving wall to the cells whose flag is set.
__device__ __forceinline__ void add(Real (&f)[CELLS], const Real gain, const Words& flags, const int bit) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] += flag(flags, bit, v) ? gain : Real(0);
}

//@begin collide
__device__ __forceinline__ void collide(Real (&f)[Q][CELLS], const int v, const Real omega) {
    const Real mean = (f[0][v] + f[1][v] + f[2][v]) / 3;
    for (int i = 0; i < Q; ++i) f[i][v] += omega * (mean - f[i][v]);
}
//@end collide

//@begin entry
//@begin signature
extern "C" __global__ void __launch_bounds__(BLOCK) step_0(
    const Stored* __restrict__ source, Stored* __restrict__ target, const Word* __restrict__ links, const int sites,
    const int nodes, const Real omega)
{
//@end signature
    const int site = CELLS * (blockIdx.x * BLOCK + threadIdx.x);
    if (site >= sites) return;
    const Extents n = {static_cast<Index>(nodes), 1, 1};
    const Index at = along_x(site, n);
    //@begin words
    const Words to_1 = words(links, 0, sites, site);
    const Words to_2 = words(links, 1, sites, site);
    //@end words

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
//@end entry
