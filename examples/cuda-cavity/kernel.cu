// The implementation, once in a program and by nvcc
#define CAVITY_IMPLEMENTATION
#include "cavity.h"
