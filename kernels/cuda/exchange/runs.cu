// Moves runs of words from the state of one part into that of another one, which may lie in the memory of another GPU.
//
// A block takes every gridDim.x-th piece of at most PIECE words. A word is the longest one that all runs consist of.

//@begin constants
typedef uint4 Word;
constexpr int THREADS = 256, PIECE = 1024;
//@end constants

extern "C" __global__ void __launch_bounds__(THREADS) move_runs(
    const Word* __restrict__ taken, Word* __restrict__ put, const long long* __restrict__ along, const int pieces) {
    constexpr int EACH = PIECE / THREADS;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
        const Word* const from = taken + along[3 * piece];
        Word* const to = put + along[3 * piece + 1];
        const int words = along[3 * piece + 2];
        Word held[EACH];
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            const int k = n * THREADS + threadIdx.x;
            if (k < words) held[n] = from[k];
        }
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            const int k = n * THREADS + threadIdx.x;
            if (k < words) to[k] = held[n];
        }
    }
}
