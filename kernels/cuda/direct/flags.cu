// Cut links by flags: one word per cell, in the order of the cells of the domain. Bit i: a wall or a solid cell cuts
// the link by which f_i arrives. Bit 0: the cell itself is solid, and all other bits are set.
//
// All threads load and exchange as if every link were open. The thread that updates a cell then loads again what
// arrives by cut links, from their own places, and only that thread stores there. An element of a vector is stored
// only if the link that leads there is open. So no place is accessed by two threads within a launch.

typedef unsigned int Word;

struct alignas(CELLS < 4 ? CELLS * sizeof(Word) : 16) Words {
    Word of[CELLS];
};

struct Flags {
    Word shut[CELLS + 2];  // of the cells and their neighbours; all bits if in another warp
    Word cut[CELLS];       // of fluid cells; zero for solid cells
    bool any;              // whether a link of a fluid cell is cut
    bool open;             // whether all links of the cells and of their neighbours in the row are open
    bool solid;            // whether all cells of the thread are solid
};

__device__ __forceinline__ Words read_words(
    const Word* words, const int x, const int y, const int z, const int nx, const int ny) {
    return *reinterpret_cast<const Words*>(words + ((Offset(z) * ny + y) * nx + x));
}

__device__ __forceinline__ Flags make_flags(const Words own, const Lane& lane) {
    Flags made;
    Word all = 0, some = 0;
    made.solid = true;
    made.shut[0] = made.shut[CELLS + 1] = 0;
    if (CELLS > 1) {
        const Word before = __shfl_sync(lane.active, own.of[CELLS - 1], lane.previous, SEGMENT);
        const Word after = __shfl_sync(lane.active, own.of[0], lane.next, SEGMENT);
        made.shut[0] = lane.first ? ~0u : before;
        made.shut[CELLS + 1] = lane.last ? ~0u : after;
    }
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        const bool solid = own.of[v] & 1u;
        made.shut[v + 1] = own.of[v];
        made.cut[v] = solid ? 0u : own.of[v];
        made.solid = made.solid && solid;
        some |= made.cut[v];
    }
#pragma unroll
    for (int v = 0; v < CELLS + 2; ++v) all |= made.shut[v];
    made.any = some != 0;
    made.open = all == 0;
    return made;
}

// Load or store f_i of the cells whose link is cut, at the place of the cut link, `shift` cells along x.
__device__ __forceinline__ void read_cut(
    Real (&f)[CELLS], const Word (&cut)[CELLS], const int i, const Stored* slot, const Index row, const Lane& lane,
    const int shift) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        if (cut[v] >> i & 1u) f[v] = widen(slot[row + element(lane, v + shift)]);
    }
}

__device__ __forceinline__ void write_cut(
    const Real (&f)[CELLS], const Word (&cut)[CELLS], const int i, Stored* slot, const Index row, const Lane& lane,
    const int shift) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) {
        if (cut[v] >> i & 1u) slot[row + element(lane, v + shift)] = narrow(f[v]);
    }
}

__device__ __forceinline__ void add_cut(Real (&f)[CELLS], const Words& moving, const int i, const Real gain) {
#pragma unroll
    for (int v = 0; v < CELLS; ++v) f[v] += moving.of[v] >> i & 1u ? gain : Real(0);
}

// Stores the elements of a vector whose links are open; element v is what cell v - shift sends along link i.
__device__ __forceinline__ void write_open(
    const Real (&moved)[CELLS], Stored* slot, const Index row, const Lane& lane, const Flags& flags, const int i,
    const int shift) {
    if (flags.open) {
        write_here(moved, slot, row, lane);
        return;
    }
    Word shut = 0;
#pragma unroll
    for (int v = 0; v < CELLS; ++v) shut |= (flags.shut[v - shift + 1] >> i & 1u) << v;
    if (shut == 0) {
        write_here(moved, slot, row, lane);
    } else if (CELLS > 1 && shut == 1u) {
        write_tail<1>(moved, slot + (row + lane.at));
    } else if (CELLS > 1 && shut == 1u << (CELLS - 1)) {
        write_head<CELLS / 2>(moved, slot + (row + lane.at));
    } else {
#pragma unroll
        for (int v = 0; v < CELLS; ++v) {
            if (!(shut >> v & 1u)) slot[row + lane.at + v] = narrow(moved[v]);
        }
    }
}

__device__ __forceinline__ void write_here_open(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const Flags& flags, const int i) {
    write_open(f, slot, row, lane, flags, i, 0);
}

__device__ __forceinline__ void write_after_open(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const Flags& flags, const int i) {
    const bool open = !(flags.shut[CELLS] >> i & 1u);
    if (CELLS > 1) {
        Real moved[CELLS];
        moved[0] = from_lane(f[CELLS - 1], lane.previous, lane);
#pragma unroll
        for (int v = 1; v < CELLS; ++v) moved[v] = f[v - 1];
        write_open(moved, slot, row, lane, flags, i, 1);
    }
    if (open && (CELLS == 1 || lane.last)) slot[row + lane.after] = narrow(f[CELLS - 1]);
}

__device__ __forceinline__ void write_before_open(
    const Real (&f)[CELLS], Stored* slot, const Index row, const Lane& lane, const Flags& flags, const int i) {
    const bool open = !(flags.shut[1] >> i & 1u);
    if (CELLS > 1) {
        Real moved[CELLS];
        moved[CELLS - 1] = from_lane(f[0], lane.next, lane);
#pragma unroll
        for (int v = 0; v < CELLS - 1; ++v) moved[v] = f[v + 1];
        write_open(moved, slot, row, lane, flags, i, -1);
    }
    if (open && (CELLS == 1 || lane.first)) slot[row + lane.before] = narrow(f[0]);
}

// Returns whether all threads that exchange values with this one have solid cells only.
__device__ __forceinline__ bool nothing_to_do(const Flags& flags, const Lane& lane) {
    return CELLS == 1 ? flags.solid : !__ballot_sync(lane.active, !flags.solid);
}

// Selects one of two places without a branch; for one cell per thread.
template <class Pointer>
__device__ __forceinline__ Pointer either(const Flags& flags, const int i, Pointer open, Pointer cut) {
    return flags.cut[0] >> i & 1u ? cut : open;
}

//@begin entry
extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y* BLOCK_Z) step_flagged(
    const Stored* __restrict__ source, Stored* __restrict__ target, const Word* __restrict__ words, const int nx,
    const int ny, const int nz, const Real omega) {
    const int x = CELLS * (blockIdx.x * BLOCK_X + threadIdx.x);
    const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
    const int z = blockIdx.z * BLOCK_Z + threadIdx.z;
    const bool inside = x < nx && y < ny && z < nz;
    const unsigned active = CELLS == 1 ? 0 : __ballot_sync(0xffffffffu, inside);
    if (!inside) return;
    const Extents n = storage_extents(nx, ny, nz);
    const Lane lane = make_lane(x, nx, n, active);
    const Index row_oo = along_y(here(y, ORIGIN_Y), n) + along_z(here(z, ORIGIN_Z), n);
    const Flags flags = make_flags(read_words(words, x, y, z, nx, ny), lane);
    if (nothing_to_do(flags, lane)) return;
    Real f[Q][CELLS];
    read_here(f[0], source + component(0, n), row_oo, lane);
    read_before(f[1], source + component(1, n), row_oo, lane);
    read_after(f[2], source + component(2, n), row_oo, lane);
    if (flags.any) {
        read_cut(f[1], flags.cut, 1, source + component(2, n), row_oo, lane, 0);
        read_cut(f[2], flags.cut, 2, source + component(1, n), row_oo, lane, 0);
    }
    for (int v = 0; v < CELLS; ++v) collide(f, v, omega);
    for (int i = 0; i < Q; ++i) write_here(f[i], target + component(i, n), row_oo, lane);
}
//@end entry
