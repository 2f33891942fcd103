// DriverActivity: records the driver's memory operations of this process with CUPTI.
//
// CUPTI takes memory of its own in a context (its attributes DEVICE_BUFFER_SIZE and
// DEVICE_BUFFER_POOL_LIMIT say how much at most), so that the readings of a process that records
// are not those of one that does not. One object at a time: CUPTI's callbacks have no argument for
// their owner.
#pragma once

#include <memory>

#include "profiler/driver_records.h"

namespace memfathom {

class DriverActivity {
 public:
  // Starts recording the operations on GPU `device`, as CUDA numbers it; before the context
  // exists. Where CUPTI is missing or refuses, nothing is recorded and finish() says why.
  explicit DriverActivity(int device);
  ~DriverActivity();
  DriverActivity(const DriverActivity&) = delete;
  DriverActivity& operator=(const DriverActivity&) = delete;

  // Notes the time of a reading of the meter.
  void mark();
  // Ends the recording. The device's work must be complete.
  DriverRecords finish();

 private:
  class Recorder;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace memfathom
