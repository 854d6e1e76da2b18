/* A lid-driven cavity at Reynolds number 100 with a kernel that lbmtune found, compared with Ghia, Ghia, Shin 1982.
 *
 *     lbmtune study cavity --lattice d2q9 --domain 128x128x1 --device cpu --out results
 *     lbmtune export results --format c --name cavity -o cavity.h
 *     cc -O2 -fopenmp -I. main.c kernel.c cavity_kernel.o -o cavity -lm
 *
 * Usage: cavity [CELLS along an edge]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cavity.h"

/* Velocity along x, over that of the lid, at heights y on the vertical centre line (table I) */
static const double heights[] = {0.0547, 0.1016, 0.1719, 0.2813, 0.4531, 0.5000, 0.6172, 0.7344, 0.8516, 0.9531};
static const double ghia[] = {-0.03717, -0.06434, -0.10150, -0.15662, -0.21090,
                              -0.20581, -0.13641, 0.00332,  0.23151,  0.68717};

static void check(const int status) {
    if (status == CAVITY_OK) return;
    fprintf(stderr, "%s\n", cavity_message());
    exit(EXIT_FAILURE);
}

/* The velocity along x on the centre line, in the middle between two columns if their number is even */
static double at(const cavity_real *velocity, const int n, const int y) {
    return 0.5 * (velocity[y * n + (n - 1) / 2] + velocity[y * n + n / 2]);
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 128;
    const double lid = 0.1, viscosity = lid * n / 100;
    cavity_solver *flow;
    check(cavity_create(&flow, n, n, 1, NULL, NULL));
    check(cavity_set_relaxation_rate(flow, 1 / (3 * viscosity + 0.5)));
    check(cavity_set_wall_velocity(flow, lid, 0, 0));

    const size_t cells = (size_t)n * n, size = 3 * cells * sizeof(cavity_real);
    cavity_real *density = malloc(size), *velocity = calloc(1, size), *before = malloc(size);
    if (density == NULL || velocity == NULL || before == NULL) return EXIT_FAILURE;
    for (double change = 1; change > 1e-6 * lid;) {
        memcpy(before, velocity, size);
        check(cavity_step(flow, 10 * n));
        check(cavity_macroscopics(flow, density, velocity));
        change = 0;
        for (size_t k = 0; k < 3 * cells; ++k) change = fmax(change, fabs((double)velocity[k] - before[k]));
    }

    double mass = 0, worst = 0;
    for (size_t k = 0; k < cells; ++k) mass += density[k] / cells;
    for (size_t k = 0; k < sizeof heights / sizeof *heights; ++k) {
        const double place = heights[k] * n - 0.5; /* walls lie half-way between cells */
        const int y = (int)place;
        const double found = (at(velocity, n, y) + (place - y) * (at(velocity, n, y + 1) - at(velocity, n, y))) / lid;
        printf("y = %.4f: u = %8.5f, Ghia %8.5f\n", heights[k], found, ghia[k]);
        worst = fmax(worst, fabs(found - ghia[k]));
    }
    printf("%lld steps, mass %.6f, largest difference %.4f\n", cavity_steps_done(flow), mass, worst);
    cavity_destroy(flow);
    free(density), free(velocity), free(before);
    return worst < 0.02 && fabs(mass - 1) < 1e-4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
