// Sampler: a thread that polls a meter to find peaks between two stages.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "profiler/meter.h"

namespace memfathom {

class Sampler {
 public:
  // The meter must outlive the sampler.
  Sampler(const MemoryMeter& meter, std::chrono::microseconds interval);
  ~Sampler();  // stops
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Stops the thread and returns the highest reading.
  Bytes stop();
  std::int64_t readings() const { return readings_; }

 private:
  void watch();
  void read();

  const MemoryMeter& meter_;
  std::chrono::microseconds interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> readings_{0};
  std::thread thread_;
};

}  // namespace memfathom
