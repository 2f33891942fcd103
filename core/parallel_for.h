// parallel_for: distributes indices over the cores, each once, in no particular order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace memfathom {

// Calls work(i) for 0 <= i < count from several threads. After all calls it rethrows the exception
// of the lowest index.
template <typename Work>
void parallel_for(std::size_t count, Work work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(count);
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  const std::size_t threads =
      std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), count);
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.emplace_back(take);
  } catch (const std::system_error&) {
    // If the system allows no more threads, the running ones do the work.
  }
  take();  // throws nothing: what work(i) throws is kept
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace memfathom
