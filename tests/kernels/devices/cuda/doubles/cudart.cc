// The double of the CUDA runtime, and of the driver functions that it hands out.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/kernels/devices/cuda/doubles/control.h"

namespace doubles = memfathom::doubles;

namespace {

constexpr int kRuntime = 13000;

// Checked first in every call: injected faults, a poisoned context, a missing driver or device.
cudaError_t enter(std::string_view function) {
  const int injected = doubles::enter(function);
  if (doubles::sticky_error() != 0) return static_cast<cudaError_t>(doubles::sticky_error());
  if (injected != 0) return static_cast<cudaError_t>(doubles::fail_with(injected));
  // An older driver of the same major version runs it (minor-version compatibility).
  if (doubles::machine().driver / 1000 < kRuntime / 1000)
    return static_cast<cudaError_t>(doubles::fail_with(cudaErrorInsufficientDriver));
  if (doubles::machine().devices == 0)
    return static_cast<cudaError_t>(doubles::fail_with(cudaErrorNoDevice));
  return cudaSuccess;
}

cudaError_t refuse(std::string_view function, const std::string& why,
                   cudaError_t status = cudaErrorInvalidValue) {
  doubles::refuse(function, why, status);
  return static_cast<cudaError_t>(doubles::fail_with(status));
}

cudaError_t check_stream(std::string_view function, cudaStream_t stream) {
  if (stream == nullptr || doubles::alive("stream", stream)) return cudaSuccess;
  return refuse(function, "the stream does not exist", cudaErrorInvalidResourceHandle);
}

cudaError_t copy(std::string_view function, void* to, const void* from, std::size_t count,
                 cudaMemcpyKind kind, cudaStream_t stream, bool deferred) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  void* target = to_device ? doubles::host_view(to, count) : to;
  const void* source = from_device ? doubles::host_view(from, count) : from;
  if (target == nullptr || source == nullptr)
    return refuse(function, "an address is not device memory of that size");
  if (!to_device && doubles::is_device_address(to))
    return refuse(function, "the target is device memory");
  if (!from_device && doubles::is_device_address(from))
    return refuse(function, "the source is device memory");
  if (deferred && !to_device) {
    // The memory may be freed by then; the copy is then dropped, as after a failed synchronization.
    doubles::defer(stream, [target, from, count] {
      if (const void* late = doubles::host_view(from, count)) std::memcpy(target, late, count);
    });
  } else {
    std::memmove(target, source, count);
  }
  return cudaSuccess;
}

// A poisoned context returns its error from every call and loses its memory.
CUresult poisoned_or(CUresult status) {
  const int sticky = doubles::sticky_error();
  return sticky != 0 ? static_cast<CUresult>(sticky) : status;
}

// Tells the double of CUPTI (tests/profiler/fake_cupti.cc), if the program has opened it.
void tell_cupti(int operation, void* address, std::size_t bytes) {
  using Note = void (*)(int, int, std::uint64_t, std::uint64_t, const char*);
  constexpr int kDeviceMemory = 3;  // CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
  const char* path = std::getenv("MEMFATHOM_CUPTI");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (library == nullptr) return;
  if (const auto note = reinterpret_cast<Note>(dlsym(library, "fake_cupti_note")))
    note(operation, kDeviceMemory, reinterpret_cast<std::uint64_t>(address), bytes,
         "/memfathom/libmemfathom_cuda.so");
  dlclose(library);
}

CUresult driver_reserve(CUdeviceptr* address, std::size_t size, std::size_t, CUdeviceptr,
                        unsigned long long) {
  if (const int injected = doubles::enter("cuMemAddressReserve"))
    return static_cast<CUresult>(injected);
  void* reserved = doubles::reserve_addresses(size);
  if (reserved == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  doubles::created("cuMemAddressReserve", reserved);
  *address = reinterpret_cast<CUdeviceptr>(reserved);
  return CUDA_SUCCESS;
}

CUresult driver_unreserve(CUdeviceptr address, std::size_t) {
  if (const int injected = doubles::enter("cuMemAddressFree"))
    return static_cast<CUresult>(injected);
  void* reserved = reinterpret_cast<void*>(address);
  if (!doubles::free_addresses(reserved)) return CUDA_ERROR_INVALID_VALUE;
  doubles::destroyed("cuMemAddressReserve", reserved);
  return poisoned_or(CUDA_SUCCESS);
}

CUresult driver_create(CUmemGenericAllocationHandle* handle, std::size_t size,
                       const CUmemAllocationProp* properties, unsigned long long) {
  if (const int injected = doubles::enter("cuMemCreate")) return static_cast<CUresult>(injected);
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || size % (2u << 20) != 0) {
    doubles::refuse("cuMemCreate", "the properties or the size are not those of device memory", 0);
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* fresh = doubles::new_physical(size);
  if (fresh == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  doubles::created("cuMemCreate", fresh);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(fresh);
  return CUDA_SUCCESS;
}

CUresult driver_release(CUmemGenericAllocationHandle handle) {
  if (const int injected = doubles::enter("cuMemRelease")) return static_cast<CUresult>(injected);
  if (!doubles::destroyed("cuMemCreate", reinterpret_cast<void*>(handle)))
    return CUDA_ERROR_INVALID_VALUE;
  doubles::delete_physical(reinterpret_cast<void*>(handle));
  return CUDA_SUCCESS;
}

CUresult driver_map(CUdeviceptr address, std::size_t size, std::size_t,
                    CUmemGenericAllocationHandle handle, unsigned long long) {
  if (const int injected = doubles::enter("cuMemMap")) return static_cast<CUresult>(injected);
  if (doubles::size_of_physical(reinterpret_cast<void*>(handle)) != size) {
    doubles::refuse("cuMemMap", "the memory does not exist or has another size", 0);
    return CUDA_ERROR_INVALID_VALUE;
  }
  return doubles::set_mapped(reinterpret_cast<void*>(address), size, true)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult driver_unmap(CUdeviceptr address, std::size_t size) {
  if (const int injected = doubles::enter("cuMemUnmap")) return static_cast<CUresult>(injected);
  return poisoned_or(doubles::set_mapped(reinterpret_cast<void*>(address), size, false)
                         ? CUDA_SUCCESS
                         : CUDA_ERROR_INVALID_VALUE);
}

CUresult driver_access(CUdeviceptr, std::size_t, const CUmemAccessDesc* access, std::size_t count) {
  if (const int injected = doubles::enter("cuMemSetAccess")) return static_cast<CUresult>(injected);
  return count == 1 && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

// Kernels are loaded lazily by default (since CUDA 12.2 on Linux); the variable decides.
CUresult driver_loading(CUmoduleLoadingMode* mode) {
  if (const int injected = doubles::enter("cuModuleGetLoadingMode"))
    return static_cast<CUresult>(injected);
  const char* asked = std::getenv("CUDA_MODULE_LOADING");
  *mode = asked != nullptr && std::string_view(asked) == "EAGER" ? CU_MODULE_EAGER_LOADING
                                                                 : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  const cudaError_t status = enter("cudaGetDeviceCount");
  if (status == cudaSuccess) *count = doubles::machine().devices;
  return status;
}

cudaError_t cudaSetDevice(int device) {
  const cudaError_t status = enter("cudaSetDevice");
  if (status != cudaSuccess) return status;
  if (device < 0 || device >= doubles::machine().devices) {
    return refuse("cudaSetDevice", "there is no such device", cudaErrorInvalidDevice);
  }
  doubles::make_context();  // since CUDA 12
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const cudaError_t status = enter("cudaGetDeviceProperties");
  if (status != cudaSuccess) return status;
  if (device < 0 || device >= doubles::machine().devices) {
    return refuse("cudaGetDeviceProperties", "there is no such device", cudaErrorInvalidDevice);
  }
  const doubles::Machine machine = doubles::machine();
  *properties = cudaDeviceProp{};
  machine.name.copy(properties->name, sizeof(properties->name) - 1);
  properties->totalGlobalMem = machine.memory;
  properties->major = machine.major;
  properties->minor = machine.minor;
  properties->multiProcessorCount = machine.multiprocessors;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->ECCEnabled = 1;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = doubles::machine().driver;
  return static_cast<cudaError_t>(doubles::enter("cudaDriverGetVersion"));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntime;
  return static_cast<cudaError_t>(doubles::enter("cudaRuntimeGetVersion"));
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  const cudaError_t status = enter("cudaMemGetInfo");
  if (status != cudaSuccess) return status;
  doubles::make_context();
  *total = doubles::machine().memory;
  *available = *total - doubles::bytes_in_use() - doubles::context_bytes();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t size) {
  const cudaError_t status = enter("cudaMalloc");
  if (status != cudaSuccess) return status;
  doubles::make_context();
  *address = doubles::new_memory(size);
  if (*address == nullptr)
    return static_cast<cudaError_t>(doubles::fail_with(cudaErrorMemoryAllocation));
  doubles::created("cudaMalloc", *address);
  tell_cupti(1, *address, size);
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  const cudaError_t status = enter("cudaFree");
  // A poisoned context loses its memory.
  if ((status != cudaSuccess && doubles::sticky_error() == 0) || address == nullptr) return status;
  if (!doubles::destroyed("cudaMalloc", address))
    return refuse("cudaFree", "the address was not allocated");
  tell_cupti(2, address, 0);
  doubles::delete_memory(address);
  return status;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  const cudaError_t status = enter("cudaStreamCreateWithFlags");
  if (status != cudaSuccess) return status;
  *stream = static_cast<cudaStream_t>(doubles::new_handle());
  doubles::created("stream", *stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t status = enter("cudaStreamDestroy");
  doubles::complete(stream);
  if (!doubles::destroyed("stream", stream))
    return refuse("cudaStreamDestroy", "the stream does not exist");
  return status;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t status = enter("cudaStreamSynchronize"); status != cudaSuccess)
    return status;
  if (const cudaError_t status = check_stream("cudaStreamSynchronize", stream);
      status != cudaSuccess)
    return status;
  doubles::complete(stream);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const cudaError_t status = enter("cudaDeviceSynchronize");
  if (status == cudaSuccess) doubles::complete(nullptr);
  return status;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t status = enter("cudaMemcpyAsync"); status != cudaSuccess) return status;
  if (const cudaError_t status = check_stream("cudaMemcpyAsync", stream); status != cudaSuccess)
    return status;
  return copy("cudaMemcpyAsync", to, from, count, kind, stream, true);
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t count, cudaStream_t stream) {
  if (const cudaError_t status = enter("cudaMemsetAsync"); status != cudaSuccess) return status;
  if (const cudaError_t status = check_stream("cudaMemsetAsync", stream); status != cudaSuccess)
    return status;
  void* host = doubles::host_view(address, count);
  if (host == nullptr)
    return refuse("cudaMemsetAsync", "the address is not device memory of that size");
  std::memset(host, value, count);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  if (const cudaError_t status = enter("cudaEventCreateWithFlags"); status != cudaSuccess)
    return status;
  *event = static_cast<cudaEvent_t>(doubles::new_handle());
  doubles::created("event", *event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  doubles::enter("cudaEventDestroy");
  return doubles::destroyed("event", event) ? cudaSuccess
                                            : refuse("cudaEventDestroy", "it does not exist");
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t status = enter("cudaEventRecord"); status != cudaSuccess) return status;
  if (!doubles::alive("event", event)) return refuse("cudaEventRecord", "it does not exist");
  return check_stream("cudaEventRecord", stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t status = enter("cudaEventSynchronize"); status != cudaSuccess)
    return status;
  return doubles::alive("event", event) ? cudaSuccess
                                        : refuse("cudaEventSynchronize", "it does not exist");
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (const cudaError_t status = enter("cudaEventElapsedTime"); status != cudaSuccess)
    return status;
  if (!doubles::alive("event", begin) || !doubles::alive("event", end))
    return refuse("cudaEventElapsedTime", "it does not exist");
  *milliseconds = doubles::next_elapsed();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(doubles::last_error(true)); }
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(doubles::last_error(false)); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    default: return "cudaErrorOther";
  }
}

const char* cudaGetErrorString(cudaError_t) { return "as told to the double"; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const cudaError_t status = enter("cudaGetDriverEntryPointByVersion");
  if (status != cudaSuccess) return status;
  const std::map<std::string_view, void*> functions{
      {"cuMemAddressReserve", address_of(driver_reserve)},
      {"cuMemAddressFree", address_of(driver_unreserve)},
      {"cuMemCreate", address_of(driver_create)},
      {"cuMemRelease", address_of(driver_release)},
      {"cuMemMap", address_of(driver_map)},
      {"cuMemUnmap", address_of(driver_unmap)},
      {"cuMemSetAccess", address_of(driver_access)},
      {"cuModuleGetLoadingMode", address_of(driver_loading)}};
  const auto found = functions.find(symbol);
  *function = found == functions.end() ? nullptr : found->second;
  *result =
      found == functions.end() ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // extern "C"
