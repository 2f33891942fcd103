// Calibration: the coefficients fitted for one environment, with uncertainty and quality.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/environment.h"
#include "core/source.h"

namespace memfathom {

// Names are stable: "context", "framework", "module.cublas", "module.cudnn", "module.cufft"
// (bytes); "theta.states", "theta.activations", "theta.temporaries", "theta.logits",
// "theta.workspaces", "theta.slack" (factors); "phi.<library>.<operation>.<term>" (workspace
// models).
struct Coefficient {
  std::string name;
  double value = 0;
  double standard_error = 0;
  std::string unit;                 // "bytes" or "1"
  Source source = Source::kFitted;  // kDefault if only the prior determines it
  bool prior_only = false;          // the data do not determine it
  int samples = 0;                  // the number of samples that determine it

  bool operator==(const Coefficient&) const = default;
};

// Split-conformal quantiles of measured / predicted, out of fold. The sorted ratios are stored, so
// that any interval and the probability of fitting can be computed.
struct RatioGroup {
  std::string group;           // "" is the group of all samples
  std::vector<double> ratios;  // sorted

  bool operator==(const RatioGroup&) const = default;
};

struct Quality {
  std::optional<double> held_out_median_error;  // leave-one-family-out; this one is published
  std::optional<double> held_out_p90_error;
  std::optional<double>
      under_by_10_percent;            // share of held-out rows under-estimated by more than 10 %
  std::optional<double> coverage_90;  // of the 90 % interval on held-out rows
  int validation_rows = 0;

  bool operator==(const Quality&) const = default;
};

struct Calibration {
  std::string id;    // content hash, hex
  std::string name;  // "a100-40gb/pytorch"
  Environment environment;
  std::string created;  // ISO 8601, UTC
  Source source =
      Source::kFitted;     // kMeasured for profiles of this machine, kPublished for embedded ones
  std::string provenance;  // files, rows and licence for published ones
  bool usable = false;
  std::string refusal;  // why it is not usable
  int samples = 0;
  std::vector<Coefficient> coefficients;
  std::vector<double> covariance;  // row-major over coefficients, may be empty
  std::vector<RatioGroup> ratios;
  Quality quality;
  std::string supersedes;  // id of the calibration it replaces

  bool operator==(const Calibration&) const = default;

  // The value of a coefficient, or `fallback` if the calibration does not contain it.
  double value_of(std::string_view coefficient, double fallback) const;
};

}  // namespace memfathom
