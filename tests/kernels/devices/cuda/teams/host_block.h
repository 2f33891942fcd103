// HostBlock: a block of threads of a GPU as real threads of the host: barriers, shuffles within a
// warp, shared memory. Device code that is compiled after this header runs in it.
//
// A barrier that some threads never reach does not wait for ever: it is counted, and everybody goes
// on. Races are ThreadSanitizer's to find: nothing orders two threads but what orders them on a
// GPU.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace memfathom::teams {

class Barrier {
 public:
  explicit Barrier(int size) : size_(size) {}
  void wait();
  // Whoever leaves will not come any more.
  void leave();
  void reset();  // while nobody waits
  int broken() const { return broken_; }

 private:
  void open();
  std::mutex mutex_;
  std::condition_variable opened_;
  int size_;
  int waiting_ = 0;
  int gone_ = 0;
  int broken_ = 0;
  std::uint64_t generation_ = 0;
};

class HostBlock {
 public:
  static constexpr int kThreads = 256;
  static constexpr int kWarp = 32;

  HostBlock();
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  // Runs `body` in every thread, as block 0, then 1, ... of `blocks`. Returns the number of
  // barriers that not every thread of the block, or of a warp in a shuffle, reached.
  int run(unsigned blocks, const std::function<void()>& body);

  void sync_block() { all_.wait(); }
  void shuffle(void* value, std::size_t bytes, int from_lane);

  static HostBlock& current();

 private:
  void serve(int number);

  Barrier all_{kThreads};
  std::vector<std::unique_ptr<Barrier>> warps_;
  std::array<std::array<char, 16>, kThreads> slots_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t started_ = 0;
  int finished_ = 0;
  bool ends_ = false;
  unsigned blocks_ = 0, block_ = 0;
  const std::function<void()>* body_ = nullptr;
  std::vector<std::thread> threads_;
};

struct Index {
  unsigned x = 0;
};

}  // namespace memfathom::teams

// CUDA's names. NOLINTBEGIN(bugprone-reserved-identifier,cert-*,readability-identifier-naming)
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(threads)
#define __shared__ static  // blocks run one after the other
inline thread_local memfathom::teams::Index threadIdx, blockIdx, gridDim;
inline void __syncthreads() { memfathom::teams::HostBlock::current().sync_block(); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int step) {
  const int lane = static_cast<int>(threadIdx.x) % memfathom::teams::HostBlock::kWarp;
  memfathom::teams::HostBlock::current().shuffle(&value, sizeof value, lane ^ step);
  return value;
}
// NOLINTEND(bugprone-reserved-identifier,cert-*,readability-identifier-naming)
