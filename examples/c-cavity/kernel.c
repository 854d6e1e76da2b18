/* The implementation, once in a program and as C */
#define CAVITY_IMPLEMENTATION
#include "cavity.h"
