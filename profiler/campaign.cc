#include "profiler/campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "profiler/checked_probe.h"
#include "profiler/driver_pass.h"
#include "profiler/virtual_gpu.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Sample sample_of(const ProbeOutcome& outcome) {
  Sample sample;
  if (outcome.reply && outcome.reply->sample) sample = *outcome.reply->sample;
  sample.status = outcome.status;
  sample.status_note = outcome.note;
  return sample;
}

// Half of max - min, relative to their midpoint.
double spread_of(const std::vector<Sample>& readings) {
  const auto [low, high] = std::minmax_element(
      readings.begin(), readings.end(),
      [](const Sample& a, const Sample& b) { return *a.device_peak < *b.device_peak; });
  const auto lowest = static_cast<double>(low->device_peak->count());
  const auto highest = static_cast<double>(high->device_peak->count());
  return highest > 0 ? (highest - lowest) / (highest + lowest) : 0;
}

Sample median_of(std::vector<Sample> readings) {
  const auto middle = readings.begin() + static_cast<std::ptrdiff_t>((readings.size() - 1) / 2);
  std::nth_element(readings.begin(), middle, readings.end(), [](const Sample& a, const Sample& b) {
    return *a.device_peak < *b.device_peak;
  });
  return *middle;
}

// Takes readings until there is a reason to stop, which becomes the sample's stop criterion.
class Repeats {
 public:
  Repeats(const CampaignOptions& options, double seconds) : options_(options), seconds_(seconds) {}

  void add(Sample reading) { readings_.push_back(std::move(reading)); }
  // Empty if another reading is worth its time.
  std::string reason_to_stop() const {
    const int taken = static_cast<int>(readings_.size());
    if (taken == 0) return {};
    if (taken > 1 && spread_of(readings_) <= options_.small_spread)
      return fmt::format("spread below {:.1f} %", 100 * options_.small_spread);
    if (taken >= options_.max_repeats) return fmt::format("{} repeats", taken);
    if (since(start_) * (taken + 1) / taken > seconds_) return "budget spent";
    return {};
  }
  Sample summary(std::string criterion) const {
    Sample sample = median_of(readings_);
    sample.repeats = static_cast<int>(readings_.size());
    if (readings_.size() > 1) sample.spread = spread_of(readings_);
    sample.stop_criterion = std::move(criterion);
    return sample;
  }

 private:
  const CampaignOptions& options_;
  double seconds_;
  Clock::time_point start_ = Clock::now();
  std::vector<Sample> readings_;
};

Sample take_reading(const Workload& workload, const CampaignOptions& options, int attempt) {
  return sample_of(run_checked_probe(options.program, request_of(workload, options, attempt),
                                     {options.limit, options.return_limit, options.stop_now}));
}

Sample take_readings(const Workload& workload, const CampaignOptions& options, double seconds) {
  Repeats repeats(options, seconds);
  int retakes = 0;
  for (int attempt = 0;; ++attempt) {
    Sample reading = take_reading(workload, options, attempt);
    if (reading.status == SampleStatus::kDisturbed && retakes++ < options.max_retakes) continue;
    if (reading.status != SampleStatus::kOk) {
      reading.stop_criterion = to_string(reading.status);
      return reading;
    }
    repeats.add(std::move(reading));
    if (std::string reason = repeats.reason_to_stop(); !reason.empty())
      return repeats.summary(std::move(reason));
  }
}

}  // namespace

ProbeRequest request_of(const Workload& workload, const CampaignOptions& options, int attempt) {
  ProbeRequest request;
  request.device = options.device;
  request.workload = workload.name;
  request.job = workload.job;
  request.uses = workload.forecast.uses;
  request.ceiling = options.ceiling;
  request.seed = stable_hash(fmt::format("{}#{}", workload.name, attempt));
  request.trace = options.trace;
  return request;
}

ProbeReply query_environment(const ProbeProgram& program, const std::string& device,
                             std::chrono::milliseconds limit) {
  ProbeRequest request;
  request.device = device;
  request.ceiling = Bytes{std::int64_t{1} << 60};
  ProbeOutcome outcome = run_probe(program, request, limit);
  if (!outcome.reply)
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} cannot be used: {}", device, outcome.note));
  return std::move(*outcome.reply);
}

Sample measure_workload(const Workload& workload, const CampaignOptions& options, double seconds) {
  Sample sample = take_readings(workload, options, seconds);
  sample.workload = workload.name;
  sample.family = workload.family;
  sample.job = workload.job;
  sample.validation = workload.validation;
  return sample;
}

int measure_all(const std::vector<Workload>& workloads, const CampaignOptions& options,
                const std::function<void(const Sample&)>& taken, const std::atomic<bool>& stop) {
  const Clock::time_point start = Clock::now();
  CampaignOptions each = options;
  DriverPass driver(options);
  int count = 0;
  for (const Workload& workload : workloads) {
    if (stop) break;
    const auto left = static_cast<double>(workloads.size()) - count;
    Sample sample =
        measure_workload(workload, each, (options.budget_seconds - since(start)) / left);
    driver.add_to(sample, workload);
    if (options.stop_now != nullptr && *options.stop_now) break;  // its probe was killed
    taken(sample);
    each.trace.clear();
    ++count;
  }
  return count;
}

}  // namespace memfathom
