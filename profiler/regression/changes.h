// Changes: a benchmark's figures before and after, whether they changed, and which part did.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/regression/compare.h"

namespace memfathom {

// A figure on both sides: medians, and the value in every process.
struct Figure {
  std::string component;  // the contract's name
  std::string words;      // readable: "device peak"
  Bytes before;
  Bytes after;
  std::vector<Bytes> all_before;
  std::vector<Bytes> all_after;
  // The number of page-rounded readings it is the sum or difference of; 0: it is exact.
  int readings = 1;
  bool has_startup = false;  // the context and the libraries' modules are in it
  std::string also;          // another component that explains the change together with this one
};

struct FigureChange {
  enum Kind { kNo, kMaybe, kYes };
  Kind kind = kNo;
  int agreeing = 0;  // processes of the new file that changed in the direction of the median
  int processes = 0;
};
FigureChange change_of(const Figure& figure, const CompareOptions& options);

// The figures that both sides have, most inclusive first: device, reserved, allocated peak,
// workspace. With `with_startup`, the context and the libraries' modules are listed separately;
// otherwise they are subtracted from the device peak.
std::vector<Figure> figures_of(const std::vector<const BenchRow*>& before,
                               const std::vector<const BenchRow*>& after, bool with_startup);

// The part of the benchmark that explains the change of `total`: a workspace whose requested size
// changed; the context or a library's modules if one changed by at least a quarter as much; else
// the allocator's slack, else the tensors, else `total` itself. Of a workspace and a start-up part
// that both changed, the words name both, the larger change first.
Figure cause_of(const std::vector<const BenchRow*>& before,
                const std::vector<const BenchRow*>& after, const Figure& total,
                const CompareOptions& options);

std::vector<StackChange> stack_changes(const Environment& before, const Environment& after);

// The keys of the software stack that can change a component, most likely first.
std::span<const std::string_view> likely_causes(std::string_view component);

}  // namespace memfathom
