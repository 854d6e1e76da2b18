    // Threads of a block share where the directions start, and load that from shared memory for each access, so that no
    // thread keeps it in registers. Source: Tran, Lee, Hong 2017, section 4.3.
    extern __shared__ uint4 shared[];
    volatile Offset* const starts = reinterpret_cast<Offset*>(shared);
    for (int q = (threadIdx.z * BLOCK_Y + threadIdx.y) * BLOCK_X + threadIdx.x; q < Q; q += BLOCK_X * BLOCK_Y * BLOCK_Z) {
        starts[q] = component(q, storage_extents(nx, ny, nz));
    }
    __syncthreads();
    const auto component = [&](const int q, const Extents&) -> Offset { return starts[q]; };
