// Estimate: the answer to a job: totals, what they are made of, the interval, the verdict:
// docs/contract.md §4 as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/calibration.h"
#include "core/component.h"
#include "core/source.h"
#include "estimator/job/job.h"
#include "estimator/job/unread_key.h"
#include "estimator/run/dry_run.h"

namespace memfathom {

enum class CalibrationStatus : std::uint8_t { kCalibrated, kStale, kPublished, kNone };
enum class VerdictStatus : std::uint8_t { kFits, kTight, kDoesNotFit, kUnknown, kUndecided };

struct ComponentLine {
  Component component = Component::kParameters;
  std::string module;  // empty: the job itself
  Bytes bytes;
  Source source = Source::kExact;
  std::string coefficient;  // of a fitted or published figure
};

struct PhaseLine {
  std::string name;
  int iteration = 0;
  Bytes allocated_peak;
  Bytes reserved;
  ComponentBytes live_at_peak{};
};

struct Totals {
  Bytes allocated_peak;
  Bytes first_allocated_peak;
  Bytes reserved_peak;
  Bytes device_peak;
  Bytes device_low;
  Bytes device_high;
  // device_high, where the target's memory ends before it: more can be wanted, not taken.
  std::optional<Bytes> device_high_on_gpu;
  // device_high, if all sequences have one length where the job does not say so. What varying ones
  // reserve beyond is cache, which the allocator gives back before it fails.
  std::optional<Bytes> device_high_equal_lengths;
  double interval = 0.9;
  // Where the target makes the allocator give its cache back: what the job takes on a GPU with room
  // for it.
  std::optional<Bytes> comfortable_peak;
  std::optional<Bytes> host_peak;  // of one GPU's process, where something is offloaded
  std::int64_t ranks_per_node = 1;
  std::string rank;  // the heaviest, where ranks differ

  // What must be there for a job to fit without much doubt.
  Bytes high_to_fit() const { return device_high_equal_lengths.value_or(device_high); }

  // Of all processes that share a host.
  std::optional<Bytes> host_of_node() const {
    return host_peak ? std::optional(*host_peak * ranks_per_node) : std::nullopt;
  }
};

struct Verdict {
  VerdictStatus status = VerdictStatus::kUnknown;
  std::string gpu;  // its name, or the device of this machine; empty where only a size is known
  std::optional<double> probability_fits;
  std::optional<Bytes> capacity;
  Bytes used_by_others;  // of the capacity
  std::optional<Bytes> available;
  std::optional<Bytes> headroom;
};

struct CalibrationNote {
  std::string id, name, created;  // created: ISO 8601, UTC
  CalibrationStatus status = CalibrationStatus::kNone;
  Environment environment;
  int samples = 0;
  std::optional<double> held_out_median_error;
};

// A change of the job that would save memory; both figures come from an estimate of the changed
// job.
struct Suggestion {
  std::string name;    // "checkpointing"
  std::string change;  // "gradient_checkpointing none -> full"
  std::string costs;   // what one pays for it, in words
  Bytes saves;
  Bytes device_peak;
  bool fits = false;       // it alone is enough
  Node patch;              // {training: {gradient_checkpointing: full}}
  std::string kind;        // what one gives up: "free", "checkpointing", "different training", ...
  double time_factor = 1;  // roughly, of the time per sample of the unchanged job
  std::string time_basis;  // what makes it so: "computing +33 %"
};

// Why a line is what it is, in one sentence with the job's own numbers.
struct Explanation {
  std::string name;    // of the component or coefficient
  std::string module;  // empty: the job itself
  std::string text;
};

// One reason why the total is uncertain, by itself: nine in ten totals lie within these bytes.
struct SpreadPart {
  std::string name;  // replay, outside, constants, workspaces, lengths, model, calibration
  Bytes below, above;
  std::string text;  // why, in a sentence
};

struct Estimate {
  std::string id;
  Totals totals;
  std::vector<ComponentLine> components;  // add up exactly to totals.device_peak
  std::vector<PhaseLine> phases;
  std::vector<Suggestion> suggestions;
  Verdict verdict;
  CalibrationNote calibration;
  std::int64_t parameter_count = 0;
  std::int64_t trainable_count = 0;
  std::int64_t layers = 0;  // modules that own parameters; 0: not known
  std::vector<std::string> assumptions, not_modelled, warnings;
  std::vector<SpreadPart> uncertainty;            // why the interval is as wide as it is
  std::vector<UnreadKey> unread;                  // keys of the files that were not read
  std::vector<Explanation> explanations;          // where they were asked for
  std::optional<double> probability_of_measured;  // of IntervalStudy::measured
};

// How published runs deviate from their replay: nine in ten lie between 1 - below and 1 + above.
struct ReplayShares {
  double below = 0;
  double above = 0;
};

// For those who study intervals: how they would be without some of their evidence.
struct IntervalStudy {
  std::optional<Bytes> measured;       // wanted: the probability that the total is at most this
  bool ignores_ratios = false;         // as if no run of the job's kind had been measured
  std::optional<ReplayShares> shares;  // instead of the published ones
};

// What the cli knows about the machine: the calibration to use (null: none), how fresh it is, the
// capacity.
struct EstimateContext {
  const Calibration* calibration = nullptr;
  CalibrationStatus status = CalibrationStatus::kNone;
  std::optional<Bytes> capacity;
  double interval = 0.9;
  bool explains = false;
  const IntervalStudy* study = nullptr;
  Bytes wanted;  // what the job would take on a larger GPU, where this one squeezes its cache
};

// The kind of a job, under which calibrations group their ratios: generation, inference,
// convolution inference; of training fourier, dense (perceptrons), convolution, transformer.
std::string job_group(const Job& job, const DryRun& run);

Estimate make_estimate(const Job& job, const DryRun& run, const EstimateContext& context);

// Sets Totals::device_high_on_gpu; again after whatever changes the interval.
void bound_by_gpu(Estimate& estimate);

// What the GPU leaves to the allocator, where the job's tensors fit there and its cache does not:
// the allocator then gives the cache back and goes on. Absent: it does not come to that.
std::optional<Bytes> memory_for_cache(const Job& job, const Estimate& estimate,
                                      const EstimateContext& context);

const char* to_string(CalibrationStatus status);
const char* to_string(VerdictStatus status);

}  // namespace memfathom
