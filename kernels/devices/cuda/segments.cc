#include "kernels/devices/cuda/segments.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/error.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {
namespace {

std::size_t count_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

void check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{}: driver error {}", call, static_cast<int>(status)));
}

// After a sticky error the context cannot free memory; the memory is released with the context.
// Destructors call this, so errors are left for the next call that can report them.
void forget(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
}

}  // namespace

CudaSegments::CudaSegments(int device) : device_(device), driver_(find_driver()) {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  capacity_ = Bytes{static_cast<std::int64_t>(total)};
}

CudaSegments::~CudaSegments() {
  for (const auto& [address, size] : held_) forget(cudaFree(reinterpret_cast<void*>(address)));
}

std::optional<std::uint64_t> CudaSegments::allocate(Bytes size, int) {
  void* address = nullptr;
  const cudaError_t status = cudaMalloc(&address, count_of(size));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which must not be attributed to the next launch
    return std::nullopt;
  }
  check(status, fmt::format("cudaMalloc of {}", to_string(size)));
  const auto number = reinterpret_cast<std::uint64_t>(address);
  held_.emplace(number, size);
  return number;
}

void CudaSegments::release(std::uint64_t address, Bytes size) {
  if (held_.erase(address) == 0) {
    throw Error(ErrorKind::kInternal,
                fmt::format("a segment of {} is released that is not held", to_string(size)));
  }
  forget(cudaFree(reinterpret_cast<void*>(address)));
}

const Driver& CudaSegments::driver() const {
  if (!driver_) {
    throw Error(
        ErrorKind::kEnvironment,
        "expandable_segments: this driver has no virtual memory functions; leave the option out");
  }
  return *driver_;
}

std::uint64_t CudaSegments::reserve(Bytes size) {
  CUdeviceptr address = 0;
  check(driver().reserve(&address, count_of(size), 0, 0, 0), "cuMemAddressReserve");
  return address;
}

void CudaSegments::unreserve(std::uint64_t address, Bytes size) {
  driver().unreserve(address, count_of(size));
}

// Memory for one page: created, mapped, and its handle released at once, because the mapping keeps
// the memory.
CUresult CudaSegments::map_page(std::uint64_t address, std::size_t page) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  CUmemGenericAllocationHandle memory = 0;
  if (const CUresult status = driver().create(&memory, page, &properties, 0);
      status != CUDA_SUCCESS)
    return status;
  const CUresult mapped = driver().map(address, page, 0, memory, 0);
  const CUresult released = driver().release(memory);
  if (mapped != CUDA_SUCCESS) return mapped;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult status =
      released == CUDA_SUCCESS ? driver().set_access(address, page, &access, 1) : released;
  if (status != CUDA_SUCCESS) driver().unmap(address, page);
  return status;
}

bool CudaSegments::map(std::uint64_t address, Bytes size, Bytes page) {
  const std::size_t step = count_of(page);
  for (std::uint64_t at = address; at < address + count_of(size); at += step) {
    const CUresult status = map_page(at, step);
    if (status == CUDA_SUCCESS) continue;
    for (std::uint64_t undo = address; undo < at; undo += step) driver().unmap(undo, step);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return false;
    check(status, "cuMemCreate, cuMemMap, cuMemRelease or cuMemSetAccess");
  }
  return true;
}

void CudaSegments::unmap(std::uint64_t address, Bytes size, Bytes page) {
  // Kernels that use the pages may still run; unlike cudaFree, unmapping does not wait for them.
  forget(cudaDeviceSynchronize());
  const std::size_t step = count_of(page);
  for (std::uint64_t at = address; at < address + count_of(size); at += step)
    driver().unmap(at, step);
}

}  // namespace memfathom::cuda
