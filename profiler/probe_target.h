// ProbeTarget: the device under measurement: its memory, its workspaces and the meter that reads
// it.
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

  // May be read before open(): the baseline.
  virtual const MemoryMeter& meter() const = 0;
  // Makes the context: loads the device's module, starts its driver.
  virtual void open() = 0;
  // The rest only after open().
  virtual Device& device() = 0;
  virtual const WorkspaceModel& workspaces() = 0;
  virtual SegmentSource& memory() = 0;  // within the ceiling
  virtual Environment environment() = 0;
  virtual Bytes memory_free() = 0;  // what could be had now without harm to others
  // A simulated GPU learns here what a real one finds out by itself: that a library is used.
  virtual void load_library(Library) {}
  // Before the job: a simulated GPU can leave memory in the allocator that the job will not find.
  virtual void prepare(Allocator&) const {}
  // The libraries that answer for workspaces.
  virtual Library convolutions() const { return Library::kCudnn; }
  virtual Library transforms() const { return Library::kCufft; }
};

// `ceiling` limits what the allocator may reserve. `seed` only matters to a simulated GPU: its
// scatter.
std::unique_ptr<ProbeTarget> make_target(const DeviceName& name, Bytes ceiling, std::uint64_t seed);

}  // namespace memfathom
