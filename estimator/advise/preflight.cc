#include "estimator/advise/preflight.h"

#include <fmt/format.h>

#include <string_view>

#include "estimator/parallel/strategy.h"

namespace memfathom {
namespace {

std::string plural(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

PreflightItem memory(const Recommendation& recommendation) {
  const Totals& totals = recommendation.base.totals;
  const bool only_likely = !recommendation.fits && totals.device_peak <= *recommendation.available;
  return {
      "memory", recommendation.fits,
      fmt::format("{}{} fits in {} (free memory minus the margin)", to_string(totals.device_peak),
                  only_likely ? ", up to " + to_string(totals.high_to_fit()) + "," : "",
                  to_string(*recommendation.available))};
}

PreflightItem other_processes(const Verdict& verdict,
                              const std::optional<std::vector<std::string>>& others) {
  const Bytes used = verdict.used_by_others;
  if (used.count() == 0) {
    return {"others", others.has_value(),
            others ? "no other process uses the GPU"
                   : "other processes on the GPU were not checked; run memfathom status or pass "
                     "--device-id"};
  }
  return {
      "others", false,
      fmt::format("other processes use {} of the GPU: end those not needed{}{}", to_string(used),
                  others && !others->empty() ? ": " : "", others ? joined_words(*others) : "")};
}

PreflightItem batch(const Job& job, const Recommendation& recommendation) {
  const LargestExtent& extent = recommendation.largest.front();
  const std::int64_t now = job.training.batch_size;
  if (!extent.largest)
    return {"batch", false, fmt::format("batch size {}: not even one sample fits", now)};
  return {"batch", now <= *extent.largest,
          fmt::format("batch size {}; the largest that fits is {}", now, *extent.largest)};
}

PreflightItem accumulation(const Job& job) {
  const std::int64_t gpus = data_parallel_size(job.parallel);
  return {"accumulation", true,
          fmt::format("effective batch size {}: {} per GPU x {} x {}",
                      job.training.batch_size * job.training.accumulation_steps * gpus,
                      job.training.batch_size,
                      plural(job.training.accumulation_steps, "accumulation step"),
                      plural(gpus, "GPU"))};
}

PreflightItem precision(const Job& job) {
  const bool half =
      job.training.precision.autocast || job.training.precision.parameters != DType::kFp32;
  return {"precision", half,
          half ? "16-bit computation is on" : "16-bit computation is off: everything is fp32"};
}

// Which modules are trained and which are not.
std::optional<PreflightItem> frozen(const Node& document, const Estimate& estimate) {
  const Node* modules = document.at("model").find("modules");
  if (modules == nullptr) return std::nullopt;
  std::vector<std::string> still, trained;
  for (const Node& module : modules->items()) {
    const Node* name = module.find("name");
    const Node* train = module.find("train");
    const bool is_frozen = train != nullptr && train->is_string() && train->as_string() == "frozen";
    (is_frozen ? still : trained)
        .push_back(name != nullptr && name->is_string() ? name->as_string() : "unnamed");
  }
  return PreflightItem{
      "frozen", !still.empty(),
      fmt::format("frozen: {}; trained: {} ({:.2f} million parameters)",
                  still.empty() ? "nothing" : joined_words(still), joined_words(trained),
                  static_cast<double>(estimate.trainable_count) / 1e6)};
}

PreflightItem calibration(const Estimate& estimate) {
  const bool own = estimate.calibration.status == CalibrationStatus::kCalibrated;
  return {
      "calibration", own,
      own ? "the GPU was calibrated here"
          : "this GPU is not calibrated; run memfathom calibrate --framework pytorch once per GPU"};
}

}  // namespace

std::vector<PreflightItem> preflight(const Node& document, const Job& job,
                                     const Recommendation& recommendation,
                                     const std::optional<std::vector<std::string>>& others) {
  if (!recommendation.available) return {};
  std::vector<PreflightItem> items{memory(recommendation),
                                   other_processes(recommendation.base.verdict, others)};
  // The sizes and types of a recorded step are not the job's.
  if (job.model.trace() == nullptr) {
    items.push_back(batch(job, recommendation));
    if (job.training.mode == Mode::kTrain) items.push_back(accumulation(job));
    items.push_back(precision(job));
  }
  if (const auto item = frozen(document, recommendation.base);
      item && job.training.mode == Mode::kTrain)
    items.push_back(*item);
  items.push_back(calibration(recommendation.base));
  return items;
}

}  // namespace memfathom
