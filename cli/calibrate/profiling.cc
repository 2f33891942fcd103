#include "cli/calibrate/profiling.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "cli/calibrate/estimator_runner.h"
#include "cli/clock.h"
#include "cli/interrupt.h"
#include "core/architecture.h"
#include "core/error.h"
#include "core/parse_number.h"
#include "core/progress.h"
#include "profiler/collectives.h"
#include "profiler/pytorch_probe.h"

namespace memfathom {
namespace {

constexpr double kShareOfFree = 0.5;  // the rest is for other processes and estimation errors
constexpr std::chrono::seconds kAskLimit{60};
constexpr std::chrono::seconds kTorchAskLimit{600};

Bytes ceiling_of(const std::optional<std::string>& given, Bytes free) {
  const auto share = [&](double part) {
    return Bytes{static_cast<std::int64_t>(part * static_cast<double>(free.count()))};
  };
  if (!given) return share(kShareOfFree);
  const std::optional<double> part = parse_number<double>(*given);
  if (!part) return parse_bytes(*given);
  if (*part <= 0 || *part > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--memory-ceiling is \"{}\"; write bytes with a unit such as 4GiB, or a "
                    "share of the free memory above 0 and up to 1",
                    *given));
  }
  return share(*part);
}

void keep_matching(const std::string& filter, Plan& plan) {
  std::erase_if(plan.workloads, [&](const Workload& workload) {
    return workload.name.find(filter) == std::string::npos;
  });
  std::erase_if(plan.left_out, [&](const SkippedWorkload& left_out) {
    return left_out.name.find(filter) == std::string::npos;
  });
  if (plan.workloads.empty() && !plan.left_out.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("no workload is left of the plan {}: {}: {}", plan.name,
                            plan.left_out.front().name, plan.left_out.front().why));
  }
  if (plan.workloads.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("no workload of the plan {} has \"{}\" in its name; --list shows them",
                            plan.name, filter));
  }
}

std::chrono::milliseconds parsed_timeout(double seconds) {
  if (!(seconds > 0 && seconds <= 86400))
    throw Error(ErrorKind::kUsage,
                fmt::format("--timeout is {}; write seconds above 0, up to a day", seconds));
  return std::chrono::milliseconds{static_cast<std::int64_t>(std::ceil(seconds * 1000))};
}

// The driver reads this variable when it starts.
std::vector<std::string> variables_of(const ProfileOptions& options) {
  if (options.module_loading.empty()) return {};
  if (options.module_loading == "lazy") return {"CUDA_MODULE_LOADING=LAZY"};
  if (options.module_loading == "eager") return {"CUDA_MODULE_LOADING=EAGER"};
  throw Error(ErrorKind::kUsage, fmt::format("--module-loading is \"{}\"; write lazy or eager",
                                             options.module_loading));
}

Framework framework_of(const ProfileOptions& options) {
  if (options.framework == "pytorch") return Framework::kPytorch;
  if (options.framework != "memfathom") {
    throw Error(ErrorKind::kUsage, fmt::format("--framework is \"{}\"; write memfathom or pytorch",
                                               options.framework));
  }
  if (options.python) throw Error(ErrorKind::kUsage, "--python requires --framework pytorch");
  return Framework::kOwn;
}

ProbeProgram probe_of(const ProfileOptions& options, Framework framework, DeviceKind kind) {
  if (framework == Framework::kOwn) return own_probe_program();
  if (kind == DeviceKind::kVirtual)
    throw Error(ErrorKind::kUsage, "PyTorch cannot run on a simulated GPU; use cpu or cuda:N");
  return pytorch_probe_program(options.python.value_or("python3"));
}

std::string line_of(const Sample& sample) {
  if (sample.status != SampleStatus::kOk)
    return fmt::format("{}: {} ({})", sample.workload, to_string(sample.status),
                       sample.status_note);
  return fmt::format("{}: {}", sample.workload, to_string(*sample.device_peak));
}

// Appends each workload's records to `file`, unless it is empty.
class DriverReport {
 public:
  DriverReport(const std::string& file, const Context& context) : context_(context) {
    if (file.empty()) return;
    file_.open(file, std::ios::trunc);
    file_ << kDriverTableHeader << std::flush;
    if (!file_) {
      throw Error(
          ErrorKind::kEnvironment,
          fmt::format("{}: the driver's allocations cannot be written; choose another place",
                      file));
    }
  }
  void add(const Sample& sample, const DriverRecords& records,
           const std::vector<StageReading>& stages) {
    const std::vector<ModuleUse> uses = uses_by_module(records);
    std::string text = fmt::format("{}: {} operations on the driver's memory", sample.workload,
                                   records.records.size());
    for (const ModuleUse& use : uses)
      text += fmt::format("; {} {} in {} allocations of {} memory",
                          use.module.empty() ? "a module that CUPTI does not name" : use.module,
                          to_string(use.peak), use.allocations, to_string(use.memory));
    context_.detail(text);
    if (file_.is_open()) file_ << driver_table(sample.workload, records, stages) << std::flush;
  }
  void refuse(const std::string& why) const {
    context_.note(fmt::format("peaks are sampled every 5 ms: {}", why));
  }

 private:
  const Context& context_;
  std::ofstream file_;
};

// A good sample with a note: what is outside the allocator is outside the published figures.
void warn_of_unusual(const std::vector<Sample>& samples, const Context& context) {
  const auto is_unusual = [](const Sample& sample) {
    return sample.status == SampleStatus::kOk && !sample.status_note.empty();
  };
  const auto first = std::find_if(samples.begin(), samples.end(), is_unusual);
  if (first == samples.end()) return;
  context.warn(fmt::format("{} of {} samples are unusual, {} first: {}",
                           std::count_if(samples.begin(), samples.end(), is_unusual),
                           samples.size(), first->workload, first->status_note));
}

}  // namespace

std::chrono::milliseconds ask_limit(Framework framework, const std::optional<double>& timeout) {
  const std::chrono::milliseconds usual =
      framework == Framework::kPytorch ? kTorchAskLimit : kAskLimit;
  return timeout ? std::max(usual, parsed_timeout(*timeout)) : usual;
}

void declare(OptionParser& parser, ProfileOptions& options) {
  parser.option("--device", options.device);
  parser.option("--plan", options.plan);
  parser.option("--framework", options.framework);
  parser.option("--python", options.python);
  parser.option("--filter", options.filter);
  parser.option("--memory-ceiling", options.memory_ceiling);
  parser.option("--timeout", options.timeout);
  parser.option("--module-loading", options.module_loading);
  parser.flag("--collectives", options.collectives);
  parser.flag("--no-cupti", options.no_cupti);
}

PreparedProfile prepare(const ProfileOptions& options) {
  const DeviceName name = parse_device(options.device);
  const Framework framework = framework_of(options);
  PreparedProfile prepared;
  prepared.campaign.device = options.device;
  prepared.campaign.program = probe_of(options, framework, name.kind);
  prepared.campaign.program.variables = variables_of(options);
  const ProbeReply answer = query_environment(prepared.campaign.program, options.device,
                                              ask_limit(framework, options.timeout));
  prepared.environment = answer.environment;
  prepared.memory_free = answer.memory_free;
  prepared.cudnn_directory = answer.cudnn_directory;
  prepared.campaign.ceiling = ceiling_of(options.memory_ceiling, answer.memory_free);
  prepared.plan = make_plan(options.plan, name.kind, prepared.campaign.ceiling, EstimatorRunner(),
                            framework, compute_capability(answer.environment.architecture));
  prepared.plan_name = options.plan;
  if (options.collectives) {
    if (framework != Framework::kPytorch) {
      throw Error(ErrorKind::kUsage,
                  "--collectives measures communicators of PyTorch; add --framework pytorch");
    }
    add_collectives(name.kind, answer.devices, prepared.plan);
    prepared.plan_name += "+collectives";
  }
  if (!options.filter.empty()) {
    keep_matching(options.filter, prepared.plan);
    prepared.plan_name += ":" + options.filter;
  }
  prepared.campaign.limit =
      options.timeout ? parsed_timeout(*options.timeout) : prepared.plan.limit;
  prepared.campaign.budget_seconds = prepared.plan.budget_seconds;
  prepared.campaign.max_repeats = prepared.plan.max_repeats;
  prepared.campaign.small_spread = prepared.plan.small_spread;
  prepared.campaign.trace = options.trace;
  prepared.campaign.driver_records = name.kind == DeviceKind::kCuda && !options.no_cupti;
  prepared.driver_allocations = options.driver_allocations;
  return prepared;
}

ExitCode interrupted_code(const ProfileResult& profiled) {
  return profiled.signal == 0 ? ExitCode::kNo : static_cast<ExitCode>(128 + profiled.signal);
}

ProfileResult profile(const PreparedProfile& prepared, Store& store, const Context& context) {
  ProfileResult profiled;
  std::vector<Workload> left = prepared.plan.workloads;
  if (const std::optional<Run> unfinished =
          store.unfinished_run(prepared.environment, prepared.plan_name)) {
    profiled.run = unfinished->id;
    std::map<std::string, Sample> there;
    for (StoredSample& stored : store.samples({.run = unfinished->id, .include_virtual = true}))
      there.insert_or_assign(stored.sample.job, std::move(stored.sample));
    std::erase_if(left, [&](const Workload& workload) { return there.contains(workload.job); });
    for (auto& [job, sample] : there) profiled.samples.push_back(std::move(sample));
    profiled.resumed = static_cast<int>(profiled.samples.size());
    context.note(fmt::format("resuming the run of {}: {} samples exist, {} remain",
                             unfinished->started, profiled.resumed, left.size()));
  } else {
    profiled.run = store.begin_run({.environment = prepared.environment,
                                    .plan = prepared.plan_name,
                                    .started = utc_now(),
                                    .program = MEMFATHOM_VERSION,
                                    .cudnn_directory = prepared.cudnn_directory});
  }
  const InterruptGuard interrupt;
  CampaignOptions campaign = prepared.campaign;
  campaign.stop_now = &interrupt.asked_now();
  DriverReport driver(prepared.driver_allocations, context);
  campaign.recorded = [&](const Sample& sample, const DriverRecords& records,
                          const std::vector<StageReading>& stages) {
    driver.add(sample, records, stages);
  };
  campaign.unrecorded = [&](const std::string& why) { driver.refuse(why); };
  {
    Progress progress(context.err, progress_mode(STDERR_FILENO, context.quiet), "measuring",
                      static_cast<std::int64_t>(left.size()));
    profiled.taken = measure_all(
        left, campaign,
        [&](const Sample& sample) {
          store.insert_sample(profiled.run, sample);
          profiled.samples.push_back(sample);
          progress.advance(1, sample.workload);
          context.detail(line_of(sample));
        },
        interrupt.asked());
  }
  warn_of_unusual(profiled.samples, context);
  profiled.interrupted = profiled.taken < static_cast<int>(left.size());
  if (interrupt.asked_now()) profiled.signal = interrupt.signal();
  if (!profiled.interrupted) store.finish_run(profiled.run, utc_now());
  return profiled;
}

}  // namespace memfathom
