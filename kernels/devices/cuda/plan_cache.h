// PlanCache: an LRU cache of a library's plans with a fixed capacity.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace memfathom::cuda {

template <typename Plan>
class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  // The plan for `key`, created by `make()` if missing. The reference is valid until the next call.
  template <typename Make>
  Plan& get(const std::string& key, Make make) {
    if (const auto found = places_.find(key); found != places_.end()) {
      plans_.splice(plans_.begin(), plans_, found->second);
      return plans_.front().second;
    }
    plans_.emplace_front(key, make());  // nothing is cached if make() throws
    places_[key] = plans_.begin();
    if (plans_.size() > capacity_) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return plans_.front().second;
  }

  std::size_t size() const { return plans_.size(); }

 private:
  using Entry = std::pair<std::string, Plan>;
  std::size_t capacity_;
  std::list<Entry> plans_;  // most recently used first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> places_;
};

}  // namespace memfathom::cuda
