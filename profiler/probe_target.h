// ProbeTarget: the device under measurement: its memory, its workspaces and its meter.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/device_kind.h"
#include "kernels/framework/device/device.h"
#include "kernels/memory/allocator/allocator.h"
#include "profiler/meter.h"

namespace memfathom {

// "cpu", "cuda:1", "virtual:NAME".
struct DeviceName {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;     // of cuda
  std::string name;  // of virtual
};
// "cuda" is cuda:0. Throws Error(kUsage) for anything else.
DeviceName parse_device(std::string_view text);

class ProbeTarget {
 public:
  virtual ~ProbeTarget() = default;

  // Can be read before open(), for the baseline.
  virtual const MemoryMeter& meter() const = 0;
  // Creates the context: loads the device's module and starts its driver.
  virtual void open() = 0;
  // The following functions require open().
  virtual Device& device() = 0;
  virtual const WorkspaceModel& workspaces() = 0;
  virtual SegmentSource& memory() = 0;  // within the ceiling
  virtual Environment environment() = 0;
  virtual Bytes memory_free() = 0;  // usable now without affecting other processes
  // That the GPU can hold at once; 0 where there is no such number.
  virtual std::int64_t resident_threads() { return 0; }
  // Tells a simulated GPU that a library is used; a real GPU needs no call.
  virtual void load_library(Library) {}
  // Called before the job: a simulated GPU can leave memory in the allocator that the job cannot
  // use.
  virtual void prepare(Allocator&) const {}
  // The libraries that provide the workspaces.
  virtual Library convolutions() const { return Library::kCudnn; }
  virtual Library transforms() const { return Library::kCufft; }
};

// `ceiling` limits what the allocator may reserve. `seed` only affects a simulated GPU's noise.
std::unique_ptr<ProbeTarget> make_target(const DeviceName& name, Bytes ceiling, std::uint64_t seed);

}  // namespace memfathom
