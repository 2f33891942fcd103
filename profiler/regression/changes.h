// Changes: the figures of one benchmark before and after, whether they moved, and which part did.
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
  std::string words;      // for people: "device peak"
  Bytes before;
  Bytes after;
  std::vector<Bytes> all_before;
  std::vector<Bytes> all_after;
  // Of how many it is the difference or sum, each rounded to a page of its own; 0: it is exact.
  int readings = 1;
};

struct FigureChange {
  enum Kind { kNo, kMaybe, kYes };
  Kind kind = kNo;
  int agreeing = 0;  // processes of the new file that moved as the median did
  int processes = 0;
};
FigureChange change_of(const Figure& figure, const CompareOptions& options);

// What both sides have, from the most to the least inclusive: device, reserved, allocated peak,
// workspace. The context and the modules of libraries stand alone when `with_startup`, and are
// otherwise taken out of the device peak.
std::vector<Figure> figures_of(const std::vector<const BenchRow*>& before,
                               const std::vector<const BenchRow*>& after, bool with_startup);

// The part of the benchmark that explains how `total` moved: a workspace that was asked for in
// another size; the context or a library's modules where one moved by a quarter as much; else the
// allocator's slack, else the tensors, else `total` itself.
Figure cause_of(const std::vector<const BenchRow*>& before,
                const std::vector<const BenchRow*>& after, const Figure& total,
                const CompareOptions& options);

std::vector<StackChange> stack_changes(const Environment& before, const Environment& after);

// The keys of the stack that can change a component, most likely first.
std::span<const std::string_view> likely_causes(std::string_view component);

}  // namespace memfathom
