/* The implementation, once in a program and as C */
#define CHANNEL_IMPLEMENTATION
#include "channel.h"
