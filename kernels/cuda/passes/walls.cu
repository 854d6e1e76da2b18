// Walls of second order in a pass of their own, one thread per cut link: what a half-way wall sent back becomes a mean of
// itself and of another population, which no link changes (lbmtune.catalogue.boundaries.second_order).

// The storage format without cache hints, which are for whole steps.
//@begin format
namespace format {
using ::narrow;
using ::Stored;
using ::widen;
}
//@end format

extern "C" __global__ void __launch_bounds__(256) walls(
    Stored* __restrict__ f0, const unsigned int* __restrict__ at, const unsigned int* __restrict__ from,
    const Real* __restrict__ share, const int links)
{
    const int n = blockIdx.x * 256 + threadIdx.x;
    if (n >= links) return;
    format::Stored* const f = reinterpret_cast<format::Stored*>(f0);
    const Real own = format::widen(f[at[n]]), other = format::widen(f[from[n]]);
    f[at[n]] = format::narrow(other + share[n] * (own - other));
}
