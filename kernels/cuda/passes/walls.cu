// Walls of second order in a pass of their own, one thread per cut link: what a half-way wall sent back becomes a mean of
// itself and of another population, which no link changes (lbmtune.catalogue.boundaries.second_order).
extern "C" __global__ void __launch_bounds__(256) walls(
    Stored* __restrict__ f0, const unsigned int* __restrict__ at, const unsigned int* __restrict__ from,
    const Real* __restrict__ share, const int links)
{
    const int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= links) return;
    const Real own = f0[at[n]], other = f0[from[n]];
    f0[at[n]] = static_cast<Stored>(other + share[n] * (own - other));
}
