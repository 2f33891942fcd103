// AllocatorStatistics: an allocator's counters, with the names of torch.cuda.memory_stats().
#pragma once

#include <cstdint>

namespace memfathom {

struct Statistic {
  std::int64_t current = 0;
  std::int64_t peak = 0;

  void add(std::int64_t amount) {
    current += amount;
    if (current > peak) peak = current;
  }
  void reset_peak() { peak = current; }

  bool operator==(const Statistic&) const = default;
};

struct PoolStatistic {
  Statistic all;
  Statistic small_pool;
  Statistic large_pool;

  void add(bool small, std::int64_t amount) {
    all.add(amount);
    (small ? small_pool : large_pool).add(amount);
  }
  void reset_peak() {
    all.reset_peak();
    small_pool.reset_peak();
    large_pool.reset_peak();
  }

  bool operator==(const PoolStatistic&) const = default;
};

struct AllocatorStatistics {
  PoolStatistic allocated_bytes;       // allocated blocks: torch.cuda.memory_allocated()
  PoolStatistic reserved_bytes;        // segments held: torch.cuda.memory_reserved()
  PoolStatistic active_bytes;          // allocated, or freed but awaiting another stream
  PoolStatistic inactive_split_bytes;  // free parts of partly used segments
  PoolStatistic requested_bytes;       // requested sizes, before rounding

  PoolStatistic allocation;  // the same counters in blocks
  PoolStatistic segment;
  PoolStatistic active;
  PoolStatistic inactive_split;

  std::int64_t num_alloc_retries = 0;  // requests that needed the cache released first
  std::int64_t num_ooms = 0;

  void reset_peaks() {
    for (PoolStatistic* statistic :
         {&allocated_bytes, &reserved_bytes, &active_bytes, &inactive_split_bytes, &requested_bytes,
          &allocation, &segment, &active, &inactive_split}) {
      statistic->reset_peak();
    }
  }

  bool operator==(const AllocatorStatistics&) const = default;
};

}  // namespace memfathom
