// As much of the CUDA runtime as an exported header calls, on top of the host shim: memory with guard bands, launches
// that run at once, and graphs that repeat them. SHIM_NAMESPACE: the name of the header, whose texts have dynamic shared
// memory of their own. SHIM_AS_LOOP: the threads of its kernels do not talk to one another.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "../cuda_on_host.h"

#define __host__
#define __constant__

#ifdef SHIM_NAMESPACE
namespace SHIM_NAMESPACE {
namespace kernel {
extern uint4 shared[] __asm__("shared");
}
namespace single {
extern uint4 shared[] __asm__("shared");
}
}  // namespace SHIM_NAMESPACE
#endif

struct CUstream_st;
typedef CUstream_st* cudaStream_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDefault = 4 };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaLaunchAttributeID {
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaPointerAttributes {
    cudaMemoryType type;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union {
        char pad[64];
        int cooperative, programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};

namespace host {

const int MULTIPROCESSORS = 132;
const size_t GUARD = 256, MOST = size_t(1) << 31;
const unsigned char GUARDED = 0xa5;
typedef std::vector<std::function<void()>> Graph;

inline std::map<char*, size_t>& allocated() {
    static std::map<char*, size_t> all;
    return all;
}
inline Graph*& captured() {
    static Graph* graph = nullptr;
    return graph;
}
inline void enqueue(const std::function<void()>& work) { captured() ? captured()->push_back(work) : work(); }
inline void fail(const char* what) {
    fprintf(stderr, "shim: %s\n", what);
    abort();
}

template <class... Types>
void call(void** values) {
    std::apply(*static_cast<void (**)(Types...)>(values[0]), *static_cast<std::tuple<Types...>*>(values[1]));
}

}  // namespace host

inline const char* cudaGetErrorString(cudaError_t error) { return error ? "refused by the shim" : "no error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
    return *value = host::MULTIPROCESSORS, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
    return *blocks = 1, cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int bytes) {
    return bytes <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}

// Filled with what is no number in any format; writes beyond it are found when it is freed.
inline cudaError_t cudaMalloc(void** at, size_t bytes) {
    if (bytes > host::MOST) return cudaErrorMemoryAllocation;
    const size_t whole = (bytes + 2 * host::GUARD + 255) / 256 * 256;
    char* found = static_cast<char*>(aligned_alloc(256, whole));
    memset(found, host::GUARDED, whole);
    memset(found + host::GUARD, 0xff, bytes);
    host::allocated()[found + host::GUARD] = bytes;
    return *at = found + host::GUARD, cudaSuccess;
}
inline cudaError_t cudaFree(void* at) {
    if (at == nullptr) return cudaSuccess;
    char* found = static_cast<char*>(at);
    const auto known = host::allocated().find(found);
    if (known == host::allocated().end()) host::fail("frees what was not allocated");
    for (size_t n = 0; n < host::GUARD; ++n) {
        const unsigned char before = found[n - host::GUARD], behind = found[known->second + n];
        if (before != host::GUARDED || behind != host::GUARDED) host::fail("wrote outside of an array");
    }
    host::allocated().erase(known);
    free(found - host::GUARD);
    return cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* pointer) {
    const char* at = static_cast<const char*>(pointer);
    found->type = cudaMemoryTypeUnregistered;
    for (const auto& one : host::allocated()) {
        if (at >= one.first && at < one.first + one.second) found->type = cudaMemoryTypeDevice;
    }
    return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return memcpy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
    return memset(at, value, bytes), cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return *stream = reinterpret_cast<cudaStream_t>(1), cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

typedef host::Graph* cudaGraph_t;
typedef host::Graph* cudaGraphExec_t;
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    return host::captured() = new host::Graph, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = host::captured();
    return host::captured() = nullptr, cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
    return *made = new host::Graph(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
    for (const auto& work : *graph) work();
    return cudaSuccess;
}

template <class... Types, class... Values>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Types...), Values&&... given) {
    bool cooperative = false;
    for (unsigned n = 0; n < config->numAttrs; ++n) {
        cooperative |= config->attrs[n].id == cudaLaunchAttributeCooperative && config->attrs[n].val.cooperative;
    }
    const dim3 grid = config->gridDim, block = config->blockDim;
    const size_t threads = size_t(block.x) * block.y * block.z, bytes = config->dynamicSmemBytes;
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || !threads || threads > 1024) {
        return cudaErrorInvalidValue;
    }
    if (cooperative && size_t(grid.x) * grid.y * grid.z > size_t(host::MULTIPROCESSORS)) return cudaErrorInvalidValue;
#ifdef SHIM_AS_LOOP
    const host::How alone = host::as_loop;
#else
    const host::How alone = host::as_fibers;
#endif
    const std::tuple<Types...> held(static_cast<Types>(given)...);
    host::enqueue([=] {
        std::tuple<Types...> arguments = held;
        void (*entry)(Types...) = kernel;
        void* values[] = {&entry, &arguments};
        const unsigned blocks[] = {grid.x, grid.y, grid.z}, sizes[] = {block.x, block.y, block.z};
        if (host::launch(host::call<Types...>, blocks, sizes, values, cooperative ? host::together : alone, bytes)) {
            host::fail("shared memory behind that of a block was written");
        }
    });
    return cudaSuccess;
}
