! A channel that a force drives along x between walls in y, with a kernel that lbmtune found, compared with its parabola.
!
!     lbmtune study channel --lattice d2q9 --domain 32x32x1 --device cpu --out results
!     lbmtune export results --format c --name channel -o channel.h
!     gcc -O2 -fopenmp -I. -c kernel.c
!     gfortran -O2 -fopenmp channel.f90 main.f90 kernel.o channel_kernel.o -o channel
!
! Usage: channel [CELLS across]
program main
  use channel
  implicit none
  real(c_double), parameter :: viscosity = 0.1d0, fastest = 0.05d0
  integer(c_int) :: nx = 32, ny = 32, y
  type(c_ptr) :: flow
  character(16) :: argument
  real(c_double) :: force, height, exact, worst, mass, change
  real(channel_real), allocatable :: density(:, :, :), velocity(:, :, :, :), before(:, :, :, :)

  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) ny
  force = 8 * viscosity * fastest / real(ny, c_double)**2

  call channel_check(channel_create(flow, nx, ny, 1, loop=c_null_funptr))
  call channel_check(channel_set_relaxation_rate(flow, 1 / (3 * viscosity + 0.5d0)))
  call channel_check(channel_set_force(flow, force, 0d0, 0d0))

  allocate (density(nx, ny, 1), velocity(nx, ny, 1, 3), before(nx, ny, 1, 3))
  velocity = 0
  change = 1
  do while (change > 1d-5 * fastest)
    before = velocity
    call channel_check(channel_step(flow, 1000_c_long_long))
    call channel_check(channel_macroscopics(flow, density, velocity))
    change = maxval(abs(velocity - before))
  end do

  worst = 0
  do y = 1, ny
    height = (y - 0.5d0) / ny ! walls lie half-way between cells
    exact = 4 * fastest * height * (1 - height)
    worst = max(worst, maxval(abs(velocity(:, y, 1, 1) - exact)) / fastest)
  end do
  mass = sum(real(density, c_double)) / size(density)
  print '(i0, " steps, mass ", f8.6, ", largest difference ", f6.4)', channel_steps_done(flow), mass, worst
  call channel_destroy(flow)
  if (worst > 0.01 .or. abs(mass - 1) > 1d-4) error stop 'the flow is not the parabola'
end program main
