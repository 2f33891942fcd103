#include "kernels/framework/tensor/ledger.h"

#include <utility>

namespace memfathom {

ModuleIndex Ledger::add_module(std::string name) {
  if (at_peak_) keep_peak();
  module_names_.push_back(std::move(name));
  live_.emplace_back();
  is_changed_.push_back(0);
  return static_cast<ModuleIndex>(live_.size() - 1);
}

void Ledger::begin_phase(std::string name, int iteration) {
  std::int64_t reserved = 0;
  if (at_peak_) keep_peak();
  if (!phases_.empty()) {
    phases_.back().allocated_end = total_;
    reserved = phases_.back().reserved_peak;
  }
  phases_.push_back({std::move(name), iteration, total_, 0, reserved, live_});
  for (const ModuleIndex module : changed_) is_changed_[module] = 0;
  changed_.clear();
}

void Ledger::keep_peak() {
  at_peak_ = false;
  std::vector<ComponentBytes>& kept = phases_.back().live_at_peak;
  kept.resize(live_.size());
  for (const ModuleIndex module : changed_) {
    kept[module] = live_[module];
    is_changed_[module] = 0;
  }
  changed_.clear();
}

}  // namespace memfathom
