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
  Ledger() : live_(1), is_changed_(1), module_names_{""} { begin_phase("load", 0); }

  // Modules of a job with several models; 0 is the job itself.
  ModuleIndex add_module(std::string name);
  const std::vector<std::string>& module_names() const { return module_names_; }

  void begin_phase(std::string name, int iteration);
  const std::vector<PhaseRecord>& phases() {
    if (at_peak_) keep_peak();
    return phases_;
  }

  void add(Component component, ModuleIndex module, std::int64_t bytes) {
    total_ += bytes;
    if (total_ > phases_.back().allocated_peak) {
      phases_.back().allocated_peak = total_;
      at_peak_ = true;
    } else if (at_peak_) {
      keep_peak();
    }
    change(component, module, bytes);
  }
  void remove(Component component, ModuleIndex module, std::int64_t bytes) {
    if (at_peak_) keep_peak();
    change(component, module, -bytes);
    total_ -= bytes;
  }
  void move(Component from, Component to, ModuleIndex module, std::int64_t bytes) {
    if (at_peak_) keep_peak();
    change(from, module, -bytes);
    change(to, module, bytes);
  }
  void note_reserved(std::int64_t reserved) {
    if (reserved > phases_.back().reserved_peak) phases_.back().reserved_peak = reserved;
  }

  std::int64_t total() const { return total_; }
  const std::vector<ComponentBytes>& live() const { return live_; }

 private:
  void change(Component component, ModuleIndex module, std::int64_t bytes) {
    live_[module][static_cast<std::size_t>(component)] += bytes;
    if (is_changed_[module] != 0) return;
    is_changed_[module] = 1;
    changed_.push_back(module);
  }
  // A rising total is written down when it first falls or moves, not with every allocation, and
  // only the modules that have changed since.
  void keep_peak();

  std::vector<ComponentBytes> live_;
  std::vector<char> is_changed_;  // by module: since the phase's last kept peak
  std::vector<ModuleIndex> changed_;
  bool at_peak_ = false;  // the total is the phase's peak and what is live has not been kept
  std::vector<std::string> module_names_;
  std::vector<PhaseRecord> phases_;
  std::int64_t total_ = 0;
};

}  // namespace memfathom
