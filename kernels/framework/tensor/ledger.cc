#include "kernels/framework/tensor/ledger.h"

#include <utility>

namespace memfathom {

ModuleIndex Ledger::add_module(std::string name) {
  module_names_.push_back(std::move(name));
  live_.emplace_back();
  return static_cast<ModuleIndex>(live_.size() - 1);
}

void Ledger::begin_phase(std::string name, int iteration) {
  std::int64_t reserved = 0;
  if (!phases_.empty()) {
    phases_.back().allocated_end = total_;
    reserved = phases_.back().reserved_peak;
  }
  phases_.push_back({std::move(name), iteration, 0, 0, reserved, {}});
  note_peak();
}

void Ledger::note_peak() {
  phases_.back().allocated_peak = total_;
  phases_.back().live_at_peak = live_;
}

}  // namespace memfathom
