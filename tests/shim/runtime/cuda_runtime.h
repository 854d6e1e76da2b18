// As much of the CUDA runtime as an exported header calls, on top of the host shim: memory with guard bands, launches
// that run at once, and graphs that repeat them. cuda_runtime.cpp does that, and is compiled once for all headers. SHIM_NAMESPACE: the name of the header, whose texts have dynamic shared
// memory of their own. SHIM_AS_LOOP: the threads of its kernels do not talk to one another.
#pragma once
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

typedef struct Graph* cudaGraph_t;
typedef struct Graph* cudaGraphExec_t;

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int);
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int bytes);
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
    return *blocks = 1, cudaSuccess;
}

// Filled with what is no number in any format; writes beyond it are found when it is freed.
cudaError_t cudaMalloc(void** at, size_t bytes);
cudaError_t cudaFree(void* at);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* pointer);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t);

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t);

namespace host {

#ifdef SHIM_AS_LOOP
const How ALONE = as_loop;
#else
const How ALONE = as_fibers;
#endif

// work: a copy of these bytes is what each thread calls, now or whenever the captured graph is launched
cudaError_t enqueue(
    const cudaLaunchConfig_t& config, How alone, void (*thread)(void**), const void* work, size_t bytes);

template <class Work>
void thread(void** work) {
    (*reinterpret_cast<Work*>(work))();
}

}  // namespace host

template <class... Types, class... Values>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Types...), Values&&... given) {
    const auto work = [=] { kernel(static_cast<Types>(given)...); };
    return host::enqueue(*config, host::ALONE, host::thread<decltype(work)>, &work, sizeof work);
}
