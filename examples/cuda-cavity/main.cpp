// A lid-driven cavity at Reynolds number 100 with a kernel that lbmtune found, compared with Ghia, Ghia, Shin 1982.
//
//     lbmtune study cavity --lattice d2q9 --domain 128x128x1 --device 0 --output results
//     lbmtune export results --format cuda --name cavity -o cavity.h
//
// Usage: cavity [CELLS along an edge]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "cavity.h"

// Velocity along x, over that of the lid, at heights y on the vertical centre line (table I)
const double heights[] = {0.0547, 0.1016, 0.1719, 0.2813, 0.4531, 0.5000, 0.6172, 0.7344, 0.8516, 0.9531};
const double ghia[] = {-0.03717, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332, 0.23151, 0.68717};

// The velocity along x on the centre line at a height, between the two nearest cells; walls lie half-way between cells.
double on_line(const std::vector<cavity::real> &velocity, const int n, const double height) {
    const double place = height * n - 0.5;
    const int below = static_cast<int>(place);
    const auto at = [&](const int y) {  // of the two columns beside the line if their number is even
        return 0.5 * (velocity[y * n + (n - 1) / 2] + velocity[y * n + n / 2]);
    };
    return at(below) + (place - below) * (at(below + 1) - at(below));
}

int main(int argc, char **argv) try {
    const int n = argc > 1 ? std::atoi(argv[1]) : 128;
    const double lid = 0.1, viscosity = lid * n / 100;
    cavity::Solver flow(n, n, 1);
    flow.set_relaxation_rate(1 / (3 * viscosity + 0.5));
    flow.set_wall_velocity(lid, 0, 0);

    const std::vector<cavity::real>::size_type cells = n * n;
    std::vector<cavity::real> density(cells), velocity(3 * cells), before(3 * cells);
    for (double change = 1; change > 1e-6 * lid;) {
        before = velocity;
        flow.step(10 * n);
        flow.macroscopics(density.data(), velocity.data());
        change = 0;
        for (std::size_t k = 0; k < velocity.size(); ++k) {
            change = std::fmax(change, std::abs(static_cast<double>(velocity[k] - before[k])));
        }
    }

    double mass = 0, worst = 0;
    for (const cavity::real rho : density) mass += rho;
    for (std::size_t k = 0; k < sizeof heights / sizeof *heights; ++k) {
        const double found = on_line(velocity, n, heights[k]) / lid;
        std::printf("y = %.4f: u = %8.5f, Ghia %8.5f\n", heights[k], found, ghia[k]);
        worst = std::fmax(worst, std::abs(found - ghia[k]));
    }
    std::printf("%lld steps, mass %.6f, largest difference %.4f\n", flow.steps_done(), mass / cells, worst);
    return worst < 0.02 && std::abs(mass / cells - 1) < 1e-4 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
}
