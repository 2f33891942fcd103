// CudaSegments: segments from cudaMalloc, and expandable ones from the driver's virtual memory
// functions.
#pragma once

#include <map>
#include <optional>

#include "kernels/devices/cuda/driver.h"
#include "kernels/memory/allocator/segment_source.h"

namespace memfathom::cuda {

class CudaSegments final : public SegmentSource {
 public:
  // `device` is the CUDA runtime's index; it must be current.
  explicit CudaSegments(int device);
  ~CudaSegments() override;
  CudaSegments(const CudaSegments&) = delete;
  CudaSegments& operator=(const CudaSegments&) = delete;

  std::optional<std::uint64_t> allocate(Bytes size, int stream) override;
  void release(std::uint64_t address, Bytes size) override;
  std::optional<Bytes> capacity() const override { return capacity_; }

  bool expandable() const override { return driver_.has_value(); }
  std::uint64_t reserve(Bytes size) override;
  void unreserve(std::uint64_t address, Bytes size) override;
  bool map(std::uint64_t address, Bytes size, Bytes page) override;
  void unmap(std::uint64_t address, Bytes size, Bytes page) override;

 private:
  const Driver& driver() const;
  CUresult map_page(std::uint64_t address, std::size_t page);

  int device_;
  Bytes capacity_;
  std::optional<Driver> driver_;
  std::map<std::uint64_t, Bytes> held_;  // allocated by cudaMalloc and not released yet
};

}  // namespace memfathom::cuda
