#include "profiler/checked_probe.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "core/architecture.h"
#include "core/error.h"
#include "profiler/nvml.h"
#include "profiler/probe_target.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;

// The whole GPU's use around a probe. A figure of the whole GPU is only the probe's if the GPU's
// use is the same after the probe as before it.
class Surroundings {
 public:
  Surroundings(const ProbeProgram& program, const ProbeRequest& request, const ProbeLimits& limits)
      : program_(program), request_(request), limits_(limits) {
    const DeviceName device = parse_device(request.device);
    if (device.kind != DeviceKind::kCuda) return;
    index_ = device.index;
    std::string why;
    nvml_ = Nvml::open(&why);
    before_ = used();
  }

  // Why a reading of `metric` is disturbed; empty if it is not. `reply` is the probe's.
  std::string disturbance(const std::string& metric, const ProbeReply& reply) const {
    if (metric == "mem-get-info") return disturbance_by_probe(reply);
    if (metric != "nvml-device" || !before_) return {};
    const Clock::time_point start = Clock::now();
    for (;;) {
      const std::optional<Bytes> now = used();
      if (!now || std::abs((*now - *before_).count()) <= kTolerance.count()) return {};
      if (Clock::now() - start >= limits_.return_limit)
        return fmt::format("the GPU's use was {} before the probe and is {} after it",
                           to_string(*before_), to_string(*now));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  static constexpr Bytes kTolerance{4 << 20};
  // Integrated GPUs share the system's memory, which never rests.
  static constexpr Bytes kSharedTolerance{64 << 20};

  std::optional<Bytes> used() const {
    if (!nvml_) return std::nullopt;
    try {
      return nvml_->device_used(index_);
    } catch (const Error&) {  // GPUs that share system memory do not report their own
      return std::nullopt;
    }
  }
  // Without NVML's figure only a process with a context knows the free memory, so that a second
  // probe is started, without a job.
  std::string disturbance_by_probe(const ProbeReply& reply) const {
    ProbeRequest request;
    request.device = request_.device;
    request.ceiling = request_.ceiling;
    const ProbeOutcome outcome = run_probe(program_, request, limits_.limit, limits_.stop);
    if (!outcome.reply) return {};
    const Bytes now = outcome.reply->memory_free;
    if (std::abs((now - reply.memory_free).count()) <= kSharedTolerance.count()) return {};
    return fmt::format("{} of the GPU were free before the job and {} are after it",
                       to_string(reply.memory_free), to_string(now));
  }

  const ProbeProgram& program_;
  const ProbeRequest& request_;
  const ProbeLimits& limits_;
  int index_ = 0;
  std::unique_ptr<Nvml> nvml_;
  std::optional<Bytes> before_;
};

bool is_of_gpu(const Sample& sample) {
  return sample.device_metric.starts_with("nvml-") || sample.device_metric == "mem-get-info";
}

// What a process of PyTorch holds outside its allocator, by 211 published figures (out-of-memory
// messages since torch 2.1 and stated measurements): a constant and a share of every 1024 threads
// that the GPU can hold, in MiB. Of the rows with lazy loading 85 % lie within -25 and +50 of the
// centre and 14 % more than 150 above it; eager loading adds the libraries' code, 624 to 1442 MiB
// between the 10th and the 90th percentile.
struct Centre {
  double constant, per_1024_threads;
};
constexpr Centre kBareContext{22, 1.90};
constexpr Centre kAfterCompute{47, 2.16};
constexpr double kHopperMib = 60;  // more after compute on sm_90
constexpr double kBelow = 25, kAbove = 150;
constexpr Centre kEagerBare{0, 2.0};
constexpr double kLeastCode = 624, kMostCode = 1442;

struct Band {
  double low = 0, high = 0;  // MiB
};

Band band_of(bool computed, const Environment& environment, double thousands) {
  if (environment.module_loading == "eager") {
    const double threads = kEagerBare.per_1024_threads * thousands;
    return {threads + (computed ? kLeastCode : 0) - kBelow, threads + kMostCode};
  }
  const Centre& centre = computed ? kAfterCompute : kBareContext;
  double mib = centre.constant + centre.per_1024_threads * thousands;
  if (computed && compute_capability(environment.architecture) == 90) mib += kHopperMib;
  return {mib - kBelow, mib + kAbove};
}

// Empty if `outside` is within the band.
std::string outside_of(const Band& band, const std::string& stage, Bytes outside) {
  if (outside.mib() >= band.low && outside.mib() <= band.high) return {};
  return fmt::format(
      "{:.0f} MiB outside the allocator after {}; published figures for such a GPU are "
      "{:.0f} to {:.0f} MiB",
      outside.mib(), stage, band.low, band.high);
}

}  // namespace

std::string contradiction_in(const Sample& sample) {
  if (sample.allocated_peak && sample.reserved_peak &&
      *sample.allocated_peak > *sample.reserved_peak) {
    return fmt::format("{} allocated are more than the {} that the allocator reserved",
                       to_string(*sample.allocated_peak), to_string(*sample.reserved_peak));
  }
  if (!is_of_gpu(sample) || !sample.device_peak || !sample.reserved_peak ||
      *sample.device_peak >= *sample.reserved_peak)
    return {};
  return fmt::format(
      "the device peak {} ({}) is below the {} that the allocator reserved: the driver does not "
      "report this process's memory",
      to_string(*sample.device_peak), sample.device_metric, to_string(*sample.reserved_peak));
}

std::string unusual_overhead(const Sample& sample, const Environment& environment,
                             std::int64_t resident_threads) {
  if (!is_of_gpu(sample) || resident_threads <= 0 || environment.module_loading.empty() ||
      sample.stages.empty())
    return {};
  const double thousands = static_cast<double>(resident_threads) / 1024;
  const bool is_torch = environment.framework == "pytorch";
  const Bytes baseline = sample.stages.front().device_used;
  for (const StageReading& reading : sample.stages) {
    // Nothing is reserved at these stages. Our own kernels and libraries are not PyTorch's.
    const bool computed = reading.stage == "cublas" || reading.stage == "cudnn";
    if (reading.stage == "communicator") return {};  // the figures are of jobs without any
    if (reading.stage != "context" && !(is_torch && computed)) continue;
    std::string why = outside_of(band_of(computed, environment, thousands), reading.stage,
                                 reading.device_used - baseline);
    if (!why.empty()) return why;
  }
  if (!is_torch || !sample.device_peak || !sample.reserved_peak) return {};
  return outside_of(band_of(true, environment, thousands), "the steps",
                    *sample.device_peak - *sample.reserved_peak);
}

ProbeOutcome run_checked_probe(const ProbeProgram& program, const ProbeRequest& request,
                               const ProbeLimits& limits) {
  const Surroundings surroundings(program, request, limits);
  ProbeOutcome outcome = run_probe(program, request, limits.limit, limits.stop);
  if (outcome.status != SampleStatus::kOk || !outcome.reply || !outcome.reply->sample)
    return outcome;
  const Sample& sample = *outcome.reply->sample;
  if (std::string why = surroundings.disturbance(sample.device_metric, *outcome.reply);
      !why.empty()) {
    outcome.status = SampleStatus::kDisturbed;
    outcome.note = std::move(why);
  } else if (!sample.device_peak) {
    outcome.status = SampleStatus::kFailed;
    outcome.note = "the probe's reply has no device peak";
  } else if (why = contradiction_in(sample); !why.empty()) {
    outcome.status = SampleStatus::kFailed;
    outcome.note = std::move(why);
  } else {
    outcome.note =
        unusual_overhead(sample, outcome.reply->environment, outcome.reply->resident_threads);
  }
  return outcome;
}

}  // namespace memfathom
