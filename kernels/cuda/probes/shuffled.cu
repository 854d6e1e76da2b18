// Micro-benchmark of vectors that are shifted by one element through warp shuffles. Compiler options define STREAMS,
// ELEMENT, VECTOR (elements of one access, a power of two) and RUN (contiguous vectors of a stream before the next one;
// 0: all of them).

struct alignas(VECTOR * sizeof(ELEMENT)) Vector {
    ELEMENT of[VECTOR];
};

__device__ __forceinline__ unsigned long long place(const int q, const int at, const int accesses) {
    if (RUN == 0) return (unsigned long long)q * accesses + at;
    constexpr int run = RUN > 0 ? RUN : 1;
    return ((unsigned long long)(at / run) * STREAMS + q) * run + at % run;
}

__device__ __forceinline__ int within(const int at, const int accesses) {
    return at < 0 ? at + accesses : at < accesses ? at : at - accesses;
}

__device__ __forceinline__ unsigned long long shuffled(const unsigned long long value, const int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}
__device__ __forceinline__ unsigned shuffled(const unsigned value, const int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}
__device__ __forceinline__ unsigned short shuffled(const unsigned short value, const int lane) {
    return (unsigned short)__shfl_sync(0xffffffffu, (unsigned)value, lane);
}

// Stores SIZE elements, a power of two, to a place of that alignment.
template <int SIZE>
__device__ __forceinline__ void write_part(const ELEMENT* value, ELEMENT* to) {
    struct alignas(SIZE * sizeof(ELEMENT)) Part {
        ELEMENT of[SIZE];
    } part;
#pragma unroll
    for (int v = 0; v < SIZE; ++v) part.of[v] = value[v];
    *reinterpret_cast<Part*>(to) = part;
}

// Store all elements but the last, or all but the first, in the fewest parts.
template <int SIZE>
__device__ __forceinline__ void write_first(const ELEMENT* value, ELEMENT* to) {
    if constexpr (SIZE > 0) {
        write_part<SIZE>(value, to);
        write_first<SIZE / 2>(value + SIZE, to + SIZE);
    }
}
template <int SIZE>
__device__ __forceinline__ void write_last(const ELEMENT* value, ELEMENT* to) {
    if constexpr (SIZE < VECTOR) {
        write_part<SIZE>(value + SIZE, to + SIZE);
        write_last<SIZE * 2>(value, to);
    }
}

// Streams are displaced in turn by -1, 0 and +1 elements, and by rows as in copy_displaced.
__device__ __forceinline__ int rows(const int q, const int far) { return far * (q / 3 % 3 - 1); }

__device__ __forceinline__ Vector read(
    const Vector* stream, const int q, const int at, const int accesses, const int by, const int lane) {
    const Vector own = stream[place(q, at, accesses)];
    if (by == 0) return own;
    const bool alone = by < 0 ? lane == 0 : lane == 31;
    ELEMENT edge = 0;
    if (alone) edge = stream[place(q, within(at + by, accesses), accesses)].of[by < 0 ? VECTOR - 1 : 0];
    const ELEMENT beside = shuffled(own.of[by < 0 ? VECTOR - 1 : 0], (lane + by) & 31);
    Vector moved;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        const int from = v + by;
        moved.of[v] = from < 0 || from >= VECTOR ? (alone ? edge : beside) : own.of[from];
    }
    return moved;
}

__device__ __forceinline__ void write(
    const Vector& value, Vector* stream, const int q, const int at, const int accesses, const int by, const int lane) {
    Vector* const to = stream + place(q, at, accesses);
    if (by == 0) {
        *to = value;
        return;
    }
    const ELEMENT beside = shuffled(value.of[by < 0 ? 0 : VECTOR - 1], (lane - by) & 31);
    Vector moved;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        const int from = v - by;
        moved.of[v] = from < 0 || from >= VECTOR ? beside : value.of[from];
    }
    // the outermost lane receives no element from a neighbour
    if (lane != (by < 0 ? 31 : 0)) {
        *to = moved;
    } else if (by < 0) {
        write_first<VECTOR / 2>(moved.of, to->of);
    } else {
        write_last<1>(moved.of, to->of);
    }
    if (lane == (by < 0 ? 0 : 31)) {
        const int beyond = by < 0 ? VECTOR - 1 : 0;
        stream[place(q, within(at + by, accesses), accesses)].of[beyond] = value.of[by < 0 ? 0 : VECTOR - 1];
    }
}

// Copies vectors that are displaced by an element each, and by rows. All lanes of a warp take the same number.
extern "C" __global__ void copy_shuffled(
    const Vector* source, Vector* target, const int accesses, const int load, const int load_far, const int store,
    const int store_far, const int apart, const int steps) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int at = thread / apart * apart * steps + thread % apart;
#pragma unroll 1
    for (int step = 0; step < steps; ++step, at += apart) {
        if (at >= accesses) return;
        Vector value[STREAMS];
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) {
            const int from = within(at + rows(q, load_far), accesses);
            value[q] = load ? read(source, q, from, accesses, q % 3 - 1, lane) : source[place(q, from, accesses)];
        }
#pragma unroll
        for (int q = 0; q < STREAMS; ++q) {
            const int to = within(at + rows(q, store_far), accesses);
            if (store) {
                write(value[q], target, q, to, accesses, q % 3 - 1, lane);
            } else {
                target[place(q, to, accesses)] = value[q];
            }
        }
    }
}
