#include "profiler/sampler.h"

#include <algorithm>

#include "core/error.h"

namespace memfathom {

Sampler::Sampler(const MemoryMeter& meter, std::chrono::microseconds interval)
    : meter_(meter), interval_(interval), thread_([this] { watch(); }) {}

Sampler::~Sampler() { stop(); }

Bytes Sampler::stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    read();
  }
  return Bytes{peak_};
}

void Sampler::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stopping_; })) read();
}

// Failed readings are skipped: the readings at each stage report the error.
void Sampler::read() {
  try {
    peak_ = std::max(peak_.load(), meter_.used().count());
    ++readings_;
  } catch (const Error&) {
    return;
  }
}

}  // namespace memfathom
