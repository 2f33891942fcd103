#include "profiler/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/architecture.h"
#include "core/error.h"
#include "core/json_value.h"
#include "core/suggest.h"
#include "profiler/plan_tables.h"

namespace memfathom {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxBatchSize = 1 << 16;

PlanLevel level_of(std::string_view name) {
  const std::optional<PlanLevel> level = enum_from_name<PlanLevel>(name);
  if (!level) {
    throw Error(ErrorKind::kUsage, fmt::format("unknown plan \"{}\"; {}", name,
                                               suggestion(name, kNamesOf<PlanLevel>)));
  }
  return *level;
}

void set_effort(PlanLevel level, Plan& plan) {
  switch (level) {
    case PlanLevel::kQuick: plan.budget_seconds = 50, plan.max_repeats = 3; break;
    case PlanLevel::kStandard: plan.budget_seconds = 540, plan.max_repeats = 4; break;
    case PlanLevel::kFull: plan.budget_seconds = 3600, plan.max_repeats = 6; break;
  }
}

// PyTorch chooses its attention kernel; its flash kernels do not support fp32.
std::string model_text(const ModelRow& row, Framework framework) {
  std::string text = row.model;
  if (framework == Framework::kOwn) return text;
  constexpr std::string_view kOurs = R"("flash")";
  constexpr std::string_view kTheirs = R"("sdpa")";
  for (std::size_t at = text.find(kOurs); at != std::string::npos; at = text.find(kOurs, at))
    text.replace(at, kOurs.size(), kTheirs);
  return text;
}

std::string job_text(const ModelRow& row, Framework framework, const char* precision,
                     std::int64_t batch) {
  return json{{"model", parse_json_value(model_text(row, framework), "the plan")},
              {"training",
               {{"batch_size", batch},
                {"precision", precision},
                {"optimizer", row.optimizer},
                {"retain_graph", false}}}}
      .dump();
}

struct Sized {
  std::string job;
  Forecast forecast;
};

// 1, 2, 3, 4, 6, 8, 12, ...: each about 1.5 times the previous one.
std::int64_t next_batch(std::int64_t batch) {
  if (batch < 3) return batch + 1;
  const bool power_of_two = (batch & (batch - 1)) == 0;
  return power_of_two ? batch + batch / 2 : batch + batch / 3;
}

using JobOfBatch = std::function<std::string(std::int64_t batch)>;

// The largest batch whose forecast is at most `target`; nullopt if a batch of one exceeds it.
std::optional<Sized> sized(const JobOfBatch& job_of, Bytes target, const JobRunner& runner) {
  std::optional<Sized> best;
  for (std::int64_t batch = 1; batch <= kMaxBatchSize; batch = next_batch(batch)) {
    std::string job = job_of(batch);
    const Forecast forecast = runner.forecast(job);
    if (forecast.reserved > target) break;
    best = Sized{std::move(job), forecast};
  }
  return best;
}

struct Candidate {
  const char* family;
  const char* variant;
  const char* precision;
  JobOfBatch job;
  const char* execution = nullptr;  // of a PytorchRow
};

// What the probe gets: the job, and how it is executed, which a forecast does not know.
std::string with_execution(std::string job, const char* execution) {
  if (execution == nullptr) return job;
  json document = parse_json_value(job, "the plan");
  document.merge_patch(parse_json_value(execution, "the plan"));
  return document.dump();
}

void add(const Candidate& candidate, const SizeRow& size, Bytes ceiling, const JobRunner& runner,
         Plan& plan) {
  const std::string name = fmt::format("{}/{}/{}/{:.0f}MiB", candidate.family, candidate.variant,
                                       candidate.precision, size.target.mib());
  if (size.target > ceiling) {
    plan.left_out.push_back({name, fmt::format("beyond the ceiling of {}", to_string(ceiling))});
    return;
  }
  std::optional<Sized> chosen = sized(candidate.job, size.target, runner);
  if (!chosen) {
    plan.left_out.push_back({name, "a batch of one already exceeds the target size"});
    return;
  }
  std::string job = with_execution(std::move(chosen->job), candidate.execution);
  const auto same = [&](const Workload& other) { return other.job == job; };
  if (std::any_of(plan.workloads.begin(), plan.workloads.end(), same)) {
    plan.left_out.push_back({name, "the same job as a smaller size"});
    return;
  }
  // Without a replay there is nothing to validate.
  const bool validates = size.validation && candidate.execution == nullptr;
  plan.workloads.push_back({name, candidate.family, std::move(job), validates, chosen->forecast});
}

std::string pytorch_job(const PytorchRow& row, std::int64_t batch) {
  json job{{"model", parse_json_value(pytorch_model(), "the plan")},
           {"training",
            {{"batch_size", batch},
             {"precision", row.precision},
             {"optimizer", "adamw"},
             {"retain_graph", false}}}};
  job.merge_patch(parse_json_value(row.changes, "the plan"));
  return job.dump();
}

// Pure and mixed 16-bit precisions of a row; those of bf16 need Ampere.
bool needs_bf16(const PytorchRow& row) { return std::string_view(row.precision).ends_with("bf16"); }

void add_pytorch_rows(PlanLevel level, DeviceKind kind, Bytes ceiling, const JobRunner& runner,
                      int compute_capability, Plan& plan) {
  const bool lacks_bf16 = compute_capability > 0 && compute_capability < kAmpere;
  for (const PytorchRow& row : pytorch_rows()) {
    if (row.level > level || (kind == DeviceKind::kCpu && !row.on_cpu)) continue;
    if (lacks_bf16 && needs_bf16(row)) {
      plan.left_out.push_back({fmt::format("{}/{}/{}", row.family, row.variant, row.precision),
                               "this GPU computes in bf16 by emulation"});
      continue;
    }
    const Candidate candidate{row.family, row.variant, row.precision,
                              [&](std::int64_t batch) { return pytorch_job(row, batch); },
                              row.execution};
    int sizes = 0;
    for (const SizeRow& size : size_rows(kind)) {
      if (size.level != PlanLevel::kStandard || ++sizes > 2) continue;
      add(candidate, size, ceiling, runner, plan);
    }
  }
}

// cuDNN supports bf16 convolutions from Ampere on; older GPUs train in fp16.
const char* type_on(int compute_capability, const char* precision) {
  const bool lacks_bf16 = compute_capability > 0 && compute_capability < kAmpere;
  return lacks_bf16 && precision == std::string_view("amp-bf16") ? "amp-fp16" : precision;
}

}  // namespace

Plan make_plan(std::string_view name, DeviceKind kind, Bytes ceiling, const JobRunner& runner,
               Framework framework, int compute_capability) {
  const PlanLevel level = level_of(name);
  Plan plan;
  plan.name = name;
  set_effort(level, plan);
  // Every sample of PyTorch imports it anew, from network storage where it must be.
  if (level != PlanLevel::kQuick || framework == Framework::kPytorch)
    plan.limit = std::chrono::seconds{300};
  for (const ModelRow& model : model_rows()) {
    if (framework == Framework::kPytorch && model.own_only) continue;
    for (const PrecisionRow& precision : precision_rows(kind)) {
      // PyTorch's FFTs reject most 16-bit inputs.
      if (framework == Framework::kPytorch && precision.pure_16bit) continue;
      const char* const type = type_on(compute_capability, precision.precision);
      // The PyTorch probe supports autocast to bf16 only.
      if (framework == Framework::kPytorch && type != precision.precision) continue;
      for (const SizeRow& size : size_rows(kind)) {
        if (std::max({model.level, precision.level, size.level}) > level) continue;
        add({model.family, model.variant, type,
             [&](std::int64_t batch) { return job_text(model, framework, type, batch); }},
            size, ceiling, runner, plan);
      }
    }
  }
  if (framework == Framework::kPytorch)
    add_pytorch_rows(level, kind, ceiling, runner, compute_capability, plan);
  return plan;
}

}  // namespace memfathom
