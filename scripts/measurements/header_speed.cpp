// The speed of a solver of an exported header, which is called `made`: million updates per second, the median of samples.
//
// Usage: header_speed NX NY NZ UPDATES SAMPLES MILLISECONDS LAUNCHES [SOLID]
//
// Samples take at least so long, and multiples of so many launches. SOLID: a file with a byte per cell.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <vector>

#include "made.h"

int main(int argc, char **argv) try {
    if (argc < 8) return 2;
    const int nx = std::atoi(argv[1]), ny = std::atoi(argv[2]), nz = std::atoi(argv[3]), samples = std::atoi(argv[5]);
    const double updates = std::atof(argv[4]), wanted_s = 1e-3 * std::atof(argv[6]);
    std::vector<unsigned char> solid;
    if (argc > 8) {
        std::ifstream file(argv[8], std::ios::binary);
        solid.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    made::Solver flow(nx, ny, nz, solid.empty() ? nullptr : solid.data());
    const long long cells = static_cast<long long>(nx) * ny * nz;
    std::vector<made::real> density(cells), velocity(3 * cells);
    for (long long k = 0; k < cells; ++k) {
        velocity[k] = static_cast<made::real>(0.05 * std::sin(6.283185307179586 * (k / nx % ny) / ny));
    }
    flow.initialise(nullptr, velocity.data());

    const auto seconds_of = [&](const long long steps) {
        const auto begin = std::chrono::steady_clock::now();
        flow.step(steps);
        flow.synchronize();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const long long unit = std::atoll(argv[7]) * made_steps_per_launch();
    seconds_of(unit);  // records graphs
    const double once = seconds_of(unit);
    const long long steps = unit * std::max(1LL, static_cast<long long>(wanted_s / once));
    seconds_of(steps);
    std::vector<double> found;
    for (int n = 0; n < samples; ++n) found.push_back(1e-6 * updates * steps / seconds_of(steps));
    std::sort(found.begin(), found.end());

    flow.macroscopics(density.data(), velocity.data());
    double mass = 0;
    for (const made::real rho : density) mass += rho;
    std::printf("%.6g %.6g %.6g %.3g\n", found[samples / 2], found.front(), found.back(), mass / cells - 1);
    return std::abs(mass / cells - 1) < 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
}
