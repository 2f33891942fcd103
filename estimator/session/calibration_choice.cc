#include "estimator/session/calibration_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/gpus.h"
#include "core/name_lookup.h"
#include "core/outside_allocator.h"
#include "estimator/session/current_stack.h"

namespace memfathom {
namespace {

// Values of target.calibration that name no calibration.
constexpr const char* kBestMatch = "auto";
constexpr const char* kNoCalibration = "none";

// Calibrations are named after this. A GPU of this machine that is in no table (a new one, a MIG
// instance) goes by the driver's name.
std::string target_gpu_name(const Job& job, const LiveGpu* live) {
  if (!job.target.gpu.empty()) return std::string(gpu_named(job.target.gpu, "target.gpu").name);
  return live != nullptr ? live->product : std::string();
}

std::string framework_of(const Job& job) {
  return job.target.stack.framework.empty() ? "pytorch" : job.target.stack.framework;
}

const Calibration* find_named(const std::vector<Calibration>& calibrations,
                              const std::string& name_or_id) {
  const auto found = std::find_if(
      calibrations.begin(), calibrations.end(),
      [&](const Calibration& one) { return one.name == name_or_id || one.id == name_or_id; });
  return found == calibrations.end() ? nullptr : &*found;
}

// Whether the calibration's runs had the PyTorch that the job names: "2.1" means any 2.1.x. A
// calibration of an unrecorded stack is used where it is asked for by its name only.
bool is_of_stack(const Calibration& calibration, const Job& job) {
  const std::string& recorded = calibration.environment.framework_version;
  const std::string& wanted = job.target.stack.version;
  if (recorded.empty() || wanted.empty()) return false;
  return recorded == wanted || recorded.starts_with(wanted + ".") ||
         wanted.starts_with(recorded + "+");
}

}  // namespace

CalibrationChoice CalibrationChooser::choose(const Job& job, const LiveGpu* live) const {
  const std::string& wanted = job.target.calibration;
  if (wanted == kNoCalibration) return {};
  const std::string gpu = target_gpu_name(job, live);
  const TargetSpec& target = job.target;
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}", wanted, gpu, framework_of(job), target.stack.version,
                  target.stack.cuda, target.compute_capability,
                  target.memory ? target.memory->count() : std::int64_t{0});
  const std::lock_guard lock(mutex_);
  const auto known = choices_.find(key);
  if (known != choices_.end()) return known->second;
  CalibrationChoice choice = wanted == kBestMatch ? best_match(gpu, job, live)
                             : wanted == kCurrentStackName
                                 ? current_stack(framework_of(job), job, live)
                                 : named(wanted);
  choices_.emplace(key, choice);
  return choice;
}

CalibrationChoice CalibrationChooser::best_match(const std::string& gpu, const Job& job,
                                                 const LiveGpu* live) const {
  const std::string framework = framework_of(job);
  const std::string name = fmt::format("{}/{}", gpu, framework);
  const std::vector<Calibration>& stored = source_.stored();
  const auto newest = std::find_if(stored.rbegin(), stored.rend(),
                                   [&](const Calibration& c) { return c.name == name; });
  if (newest != stored.rend()) return {*newest, CalibrationStatus::kCalibrated, {}};
  const std::vector<Calibration>& published = source_.published();
  if (const Calibration* own = find_named(published, name); own && is_of_stack(*own, job))
    return {*own, CalibrationStatus::kPublished, {}};
  return current_stack(framework, job, live);
}

CalibrationChoice CalibrationChooser::current_stack(const std::string& framework, const Job& job,
                                                    const LiveGpu* live) const {
  const std::vector<Calibration>& published = source_.published();
  if (const Calibration* current = find_named(published, "current/" + framework))
    return {current_stack_calibration(*current, job, live), CalibrationStatus::kNone, {}};
  const Calibration* defaults = find_named(published, "default/" + framework);
  if (defaults == nullptr) return {};
  return {*defaults, CalibrationStatus::kNone, {}};
}

CalibrationChoice CalibrationChooser::named(const std::string& wanted) const {
  const std::vector<Calibration>& published = source_.published();
  const std::vector<Calibration>& stored = source_.stored();
  std::vector<NamedEntry> entries;  // the newest of a name comes last
  for (const Calibration& calibration : published)
    entries.push_back({calibration.id, calibration.name});
  for (const Calibration& calibration : stored)
    entries.push_back({calibration.id, calibration.name});
  const std::optional<std::size_t> found = find_by_name_or_id(entries, wanted, "calibrations");
  if (!found) {
    throw Error(ErrorKind::kInput,
                fmt::format("target.calibration \"{}\" is neither a usable calibration of the "
                            "database {} nor a published one; `memfathom calibrations list` shows "
                            "them",
                            wanted, source_.location()));
  }
  if (*found < published.size()) return {published[*found], CalibrationStatus::kPublished, {}};
  return {stored[*found - published.size()], CalibrationStatus::kCalibrated, {}};
}

void CalibrationChooser::require(const std::string& wanted) const {
  if (wanted != kBestMatch && wanted != kNoCalibration) named(wanted);
}

std::string stale_reason(const Environment& calibrated, const Job& job, const LiveGpu* live) {
  const StackSpec& stack = job.target.stack;
  const std::string driver = live != nullptr ? live->driver : std::string();
  const std::array<std::tuple<const char*, const std::string&, const std::string&>, 4> parts{
      {{"the driver", calibrated.driver, driver},
       {"CUDA", calibrated.cuda, stack.cuda},
       {"cuDNN", calibrated.cudnn, stack.cudnn},
       {"the framework", calibrated.framework_version, stack.version}}};
  for (const auto& [what, then, now] : parts) {
    // A job's "2.6" means any 2.6.x.
    if (then.empty() || now.empty() || then == now || then.starts_with(now + ".")) continue;
    return fmt::format("{} was {} and is {}", what, then, now);
  }
  return "";
}

}  // namespace memfathom
