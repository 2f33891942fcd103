#include "tests/kernels/devices/cuda/teams/host_block.h"

namespace memfathom::teams {
namespace {

HostBlock* the_block = nullptr;

}  // namespace

void Barrier::open() {
  waiting_ = 0;
  ++generation_;
  opened_.notify_all();
}

void Barrier::wait() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = generation_;
  ++waiting_;
  if (waiting_ + gone_ == size_) {
    if (gone_ > 0) ++broken_;
    return open();
  }
  opened_.wait(lock, [&] { return generation_ != mine; });
}

void Barrier::leave() {
  const std::lock_guard lock(mutex_);
  ++gone_;
  if (waiting_ == 0 || waiting_ + gone_ < size_) return;
  ++broken_;
  open();
}

void Barrier::reset() {
  const std::lock_guard lock(mutex_);
  gone_ = 0;
  broken_ = 0;
}

HostBlock::HostBlock() {
  the_block = this;
  for (int w = 0; w < kThreads / kWarp; ++w) warps_.push_back(std::make_unique<Barrier>(kWarp));
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this, i] { serve(i); });
}

HostBlock::~HostBlock() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  the_block = nullptr;
}

HostBlock& HostBlock::current() { return *the_block; }

void HostBlock::serve(int number) {
  threadIdx.x = static_cast<unsigned>(number);
  Barrier& warp = *warps_[static_cast<std::size_t>(number / kWarp)];
  for (std::uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || started_ != seen; });
      if (ends_) return;
      seen = started_;
      blockIdx.x = block_;
      gridDim.x = blocks_;
    }
    (*body_)();
    all_.leave();
    warp.leave();
    const std::lock_guard lock(mutex_);
    if (++finished_ == kThreads) changed_.notify_all();
  }
}

int HostBlock::run(unsigned blocks, const std::function<void()>& body) {
  int broken = 0;
  for (unsigned block = 0; block < blocks; ++block) {
    std::unique_lock lock(mutex_);
    blocks_ = blocks;
    block_ = block;
    body_ = &body;
    finished_ = 0;
    ++started_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return finished_ == kThreads; });
    broken += all_.broken();
    all_.reset();
    for (const std::unique_ptr<Barrier>& warp : warps_) {
      broken += warp->broken();
      warp->reset();
    }
  }
  return broken;
}

// Every lane of the warp takes part, as the kernels' masks say.
void HostBlock::shuffle(void* value, std::size_t bytes, int from_lane) {
  const auto own = static_cast<std::size_t>(threadIdx.x);
  const std::size_t first = own / kWarp * kWarp;
  Barrier& warp = *warps_[own / kWarp];
  std::memcpy(slots_[own].data(), value, bytes);
  warp.wait();
  std::memcpy(value, slots_[first + static_cast<std::size_t>(from_lane)].data(), bytes);
  warp.wait();  // before anybody writes again
}

}  // namespace memfathom::teams
