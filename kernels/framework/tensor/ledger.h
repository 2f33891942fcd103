// Ledger: allocated bytes by component and module, now and at each phase's peak.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/component.h"

namespace memfathom {

using ModuleIndex = std::uint16_t;

// Live bytes of one module by component.
using ComponentBytes = std::array<std::int64_t, kComponentCount>;

struct PhaseRecord {
  std::string name;   // load, forward, backward, step, prefill, decode
  int iteration = 0;  // 0 for load, then from 1
  std::int64_t allocated_peak = 0;
  std::int64_t allocated_end = 0;
  std::int64_t reserved_peak = 0;
  std::vector<ComponentBytes> live_at_peak;  // by module
};

class Ledger {
 public:
  Ledger() : live_(1), module_names_{""} { begin_phase("load", 0); }

  // Modules of a job with several models; 0 is the job itself.
  ModuleIndex add_module(std::string name);
  const std::vector<std::string>& module_names() const { return module_names_; }

  void begin_phase(std::string name, int iteration);
  const std::vector<PhaseRecord>& phases() const { return phases_; }

  void add(Component component, ModuleIndex module, std::int64_t bytes) {
    live_[module][static_cast<std::size_t>(component)] += bytes;
    total_ += bytes;
    if (total_ > phases_.back().allocated_peak) note_peak();
  }
  void remove(Component component, ModuleIndex module, std::int64_t bytes) {
    live_[module][static_cast<std::size_t>(component)] -= bytes;
    total_ -= bytes;
  }
  void move(Component from, Component to, ModuleIndex module, std::int64_t bytes) {
    live_[module][static_cast<std::size_t>(from)] -= bytes;
    live_[module][static_cast<std::size_t>(to)] += bytes;
  }
  void note_reserved(std::int64_t reserved) {
    if (reserved > phases_.back().reserved_peak) phases_.back().reserved_peak = reserved;
  }

  std::int64_t total() const { return total_; }
  const std::vector<ComponentBytes>& live() const { return live_; }

 private:
  void note_peak();

  std::vector<ComponentBytes> live_;
  std::vector<std::string> module_names_;
  std::vector<PhaseRecord> phases_;
  std::int64_t total_ = 0;
};

}  // namespace memfathom
