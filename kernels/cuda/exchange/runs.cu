// Moves runs of words from the state of one part into that of another one, which may lie in the memory of another GPU.
//
// A warp takes every WARPS-th piece of at most PIECE words, and looks up the next one while words are on their way. A
// word is the longest one that all runs consist of.

//@begin constants
typedef uint4 Word;
constexpr int THREADS = 256, PIECE = 128;
//@end constants

struct Move {
    long long from, to;
    int words;
};

__device__ __forceinline__ Move move_at(const long long* along, const int piece, const int pieces) {
    if (piece >= pieces) return {0, 0, 0};
    const long long* const at = along + 3 * piece;
    return {at[0], at[1], static_cast<int>(at[2])};
}

extern "C" __global__ void __launch_bounds__(THREADS) move_runs(
    const Word* __restrict__ taken, Word* __restrict__ put, const long long* __restrict__ along, const int pieces) {
    constexpr int EACH = PIECE / 32;
    const int lane = threadIdx.x % 32, warps = gridDim.x * (THREADS / 32);
    int piece = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    for (Move now = move_at(along, piece, pieces); piece < pieces; piece += warps) {
        const Move next = move_at(along, piece + warps, pieces);
        Word held[EACH];
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            if (n * 32 + lane < now.words) held[n] = taken[now.from + n * 32 + lane];
        }
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            if (n * 32 + lane < now.words) put[now.to + n * 32 + lane] = held[n];
        }
        now = next;
    }
}
