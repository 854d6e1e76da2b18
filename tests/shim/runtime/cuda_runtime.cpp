// What cuda_runtime.h declares.
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

struct Graph {
    std::vector<std::function<void()>> launches;
};

namespace {

const int MULTIPROCESSORS = 132;
const size_t GUARD = 256, MOST = size_t(1) << 31;
const unsigned char GUARDED = 0xa5;

std::map<char*, size_t> allocated;  // bytes
Graph* captured = nullptr;

void fail(const char* what) {
    fprintf(stderr, "shim: %s\n", what);
    abort();
}

}  // namespace

const char* cudaGetErrorString(const cudaError_t error) { return error ? "refused by the shim" : "no error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = MULTIPROCESSORS, cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, const int bytes) {
    return bytes <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMalloc(void** at, const size_t bytes) {
    if (bytes > MOST) return cudaErrorMemoryAllocation;
    const size_t whole = (bytes + 2 * GUARD + 255) / 256 * 256;
    char* found = static_cast<char*>(aligned_alloc(256, whole));
    memset(found, GUARDED, whole);
    memset(found + GUARD, 0xff, bytes);
    allocated[found + GUARD] = bytes;
    return *at = found + GUARD, cudaSuccess;
}
cudaError_t cudaFree(void* at) {
    if (at == nullptr) return cudaSuccess;
    char* found = static_cast<char*>(at);
    const auto known = allocated.find(found);
    if (known == allocated.end()) fail("frees what was not allocated");
    for (size_t n = 0; n < GUARD; ++n) {
        const unsigned char before = found[n - GUARD], behind = found[known->second + n];
        if (before != GUARDED || behind != GUARDED) fail("wrote outside of an array");
    }
    allocated.erase(known);
    free(found - GUARD);
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* pointer) {
    const char* at = static_cast<const char*>(pointer);
    found->type = cudaMemoryTypeUnregistered;
    for (const auto& one : allocated) {
        if (at >= one.first && at < one.first + one.second) found->type = cudaMemoryTypeDevice;
    }
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, const size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, const int value, const size_t bytes, cudaStream_t) {
    return memset(at, value, bytes), cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = reinterpret_cast<cudaStream_t>(1), cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return captured = new Graph, cudaSuccess; }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = captured;
    return captured = nullptr, cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
    return *made = new Graph(*graph), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    for (const auto& launch : graph->launches) launch();
    return cudaSuccess;
}

cudaError_t host::enqueue(
    const cudaLaunchConfig_t& config, const How alone, void (*thread)(void**), const void* work, const size_t bytes) {
    bool cooperative = false;
    for (unsigned n = 0; n < config.numAttrs; ++n) {
        cooperative |= config.attrs[n].id == cudaLaunchAttributeCooperative && config.attrs[n].val.cooperative;
    }
    const dim3 grid = config.gridDim, block = config.blockDim;
    const size_t threads = size_t(block.x) * block.y * block.z, shared = config.dynamicSmemBytes;
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || !threads || threads > 1024) {
        return cudaErrorInvalidValue;
    }
    if (cooperative && size_t(grid.x) * grid.y * grid.z > size_t(MULTIPROCESSORS)) return cudaErrorInvalidValue;
    std::vector<void*> held((bytes + sizeof(void*) - 1) / sizeof(void*));
    memcpy(held.data(), work, bytes);
    const std::function<void()> launch = [=]() mutable {
        const unsigned blocks[] = {grid.x, grid.y, grid.z}, sizes[] = {block.x, block.y, block.z};
        if (host::launch(thread, blocks, sizes, held.data(), cooperative ? together : alone, shared)) {
            fail("shared memory behind that of a block was written");
        }
    };
    return captured ? captured->launches.push_back(launch) : launch(), cudaSuccess;
}
