// Variation: the sizes at which a recorded step can be had (docs/contract.md §5, `varies`). A trace
// that was recorded at several sizes gives each number that depends on them as a polynomial.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/document.h"

namespace memfathom {

// Sizes of a step by their names, batch_size and sequence_length.
using TraceSizes = std::map<std::string, std::int64_t>;

class Variation {
 public:
  // Reads a trace's header. Throws Error(kInput) for `asked` sizes that the trace cannot have.
  Variation(const Node& header, const std::string& name, const TraceSizes& asked);

  const TraceSizes& sizes() const { return sizes_; }                // of the step as it is read
  const std::vector<std::string>& names() const { return names_; }  // of what may be asked for
  const TraceSizes& least() const { return least_; }                // from which on
  bool is_active() const { return !powers_.empty(); }  // other sizes than the recorded ones
  // What a reader of the answer must know of it; empty if the recorded sizes are read.
  const std::string& sentence() const { return sentence_; }
  // Of sizes that the job names and the trace does not.
  const std::vector<std::string>& unchecked() const { return unchecked_; }

  // The value of a polynomial; none if it is no size.
  std::optional<std::int64_t> value(std::span<const std::int64_t> coefficients) const;
  // Puts the numbers of `event` that depend on a size in their places. Returns what is wrong with
  // it, or nothing.
  std::optional<std::string> apply(nlohmann::json& event) const;

 private:
  void read_terms(const Node& varies, const TraceSizes& asked);

  TraceSizes sizes_, least_;
  std::vector<std::string> names_, unchecked_;
  std::vector<__int128> powers_;  // per term
  std::string sentence_;
};

}  // namespace memfathom
