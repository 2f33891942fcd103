// Accuracy: errors, coverage and verdicts of scored jobs, by data set or group.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "estimator/accuracy/measured_jobs.h"
#include "estimator/session/estimator.h"

namespace memfathom {

// Which evidence a row's interval must do without.
enum class LeftOut {
  kNothing,
  kFamily,  // measured runs of its kind: the calibration's constants stay
  kStack,   // its calibration: the current stack answers
  kSource,  // rows of its own source, in how far replays deviate
};

struct AccuracyRequest {
  std::string data;  // a file of measured jobs, or a folder of them
  MeasuredJobsFilter filter;
  bool by_group = false;
  std::size_t anchors = 0;  // runs that calibrate each group first; 0: none
  std::size_t folds = 0;    // calibrate out of fold; 0: not
  LeftOut left_out = LeftOut::kNothing;
};

// How often central intervals of this level cover device figures; each data set counts alike.
struct ReliabilityPoint {
  double level = 0;
  double coverage = 0;
};

// What is said of one data set and metric; what was not measured is absent.
struct AccuracyRow {
  std::string name;  // "timm_a100:device"
  int rows = 0, answered = 0;
  std::optional<double> median, p90, under;
  std::optional<double> coverage, width;  // of device figures: their 90 % intervals
  // Where the coverage of such intervals lies in 95 of 100 data sets with as many rows.
  std::optional<double> band_low, band_high;
  std::optional<double> spread;  // of the errors: what nine in ten lie within
  std::optional<double> right;   // share of correct verdicts
};

struct AccuracyReport {
  std::vector<AccuracyRow> rows;
  std::vector<std::string> refusals;  // "id: why it was not answered"
  std::vector<ReliabilityPoint> reliability;
  std::optional<double> brier;  // mean squared error of the probability of fitting
  int verdicts = 0;             // that it was taken from
};

// Throws Error(kInput) if the data cannot be read.
AccuracyReport measure_accuracy(const AccuracyRequest& request, const Estimator& estimator);

nlohmann::json accuracy_json(const AccuracyReport& report);

}  // namespace memfathom
