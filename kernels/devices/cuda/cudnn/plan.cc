#include "kernels/devices/cuda/cudnn/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/error.h"

namespace memfathom::cudnn {
namespace {

bool is_dropped(const Descriptor& configuration, const Graph& graph, const PlanOptions& options) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t held = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                       static_cast<std::int64_t>(notes.size()), notes.data());
  const auto end =
      notes.begin() + std::min<std::int64_t>(held, static_cast<std::int64_t>(notes.size()));
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), end, note) != end;
  };
  return has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
         (options.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) ||
         (!options.allow_tf32 && graph.dtype() == DType::kFp32 &&
          has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

class Heuristics {
 public:
  Heuristics(const Graph& graph, const DeviceProperties& device, cudnnBackendHeurMode_t mode)
      : descriptor_(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                    mode == CUDNN_HEUR_MODE_FALLBACK ? "fallback heuristics" : "heuristics") {
    descriptor_.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
    descriptor_.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (const Descriptor* described = device.descriptor())
      descriptor_.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *described);
    descriptor_.finalize();
  }

  std::int64_t size() const {
    return descriptor_.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  }

  std::vector<Descriptor> first(std::int64_t count) const {
    std::vector<Descriptor> configurations;
    for (std::int64_t i = 0; i < count; ++i) {
      configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
    }
    if (count > 0) descriptor_.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, configurations);
    return configurations;
  }

 private:
  Descriptor descriptor_;
};

// A configuration's workspace, or nullopt if cuDNN cannot build it (PyTorch then tries the next).
std::optional<Bytes> workspace_of(const Descriptor& configuration) {
  std::int64_t bytes = 0;
  std::int64_t held = 0;
  const cudnnStatus_t status = cudnnBackendGetAttribute(
      configuration.raw(), CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &held, &bytes);
  if (status != CUDNN_STATUS_SUCCESS || held != 1 || bytes < 0) return std::nullopt;
  return Bytes{bytes};
}

// Appends the engines that pass PyTorch's filters, at most `limit` of them.
void append(std::vector<Engine>& engines, std::vector<Descriptor> configurations,
            const Graph& graph, const PlanOptions& options, std::size_t limit) {
  for (Descriptor& configuration : configurations) {
    if (engines.size() >= limit) return;
    if (is_dropped(configuration, graph, options)) continue;
    if (const std::optional<Bytes> bytes = workspace_of(configuration)) {
      engines.push_back({std::move(configuration), *bytes});
    }
  }
}

[[noreturn]] void no_engine(const std::string& why) {
  throw Error(ErrorKind::kEnvironment,
              "cuDNN has no engine for this operation on this device" + why);
}

}  // namespace

DeviceProperties DeviceProperties::from_json(std::string_view json) {
  Descriptor descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<std::int64_t>(json.size()), json.data());
  descriptor.finalize();
  return DeviceProperties(std::move(descriptor));
}

Engine first_engine(const Graph& graph, const DeviceProperties& device,
                    const PlanOptions& options) {
  std::vector<Engine> engines;
  std::string why;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      const Heuristics heuristics(graph, device, mode);
      // The first one nearly always passes the filters, and reading a configuration is slow.
      append(engines, heuristics.first(1), graph, options, 1);
      if (engines.empty()) append(engines, heuristics.first(heuristics.size()), graph, options, 1);
    } catch (const Error& error) {
      if (why.empty()) why = fmt::format(" ({})", error.what());
    }
    if (!engines.empty()) return std::move(engines.front());
  }
  no_engine(why);
}

std::vector<Engine> all_engines(const Graph& graph, const DeviceProperties& device,
                                const PlanOptions& options) {
  std::vector<Engine> engines;
  std::string why;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      const Heuristics heuristics(graph, device, mode);
      append(engines, heuristics.first(heuristics.size()), graph, options, SIZE_MAX);
    } catch (const Error& error) {
      if (why.empty()) why = fmt::format(" ({})", error.what());
    }
  }
  if (engines.empty()) no_engine(why);
  return engines;
}

Bytes largest_workspace(const std::vector<Engine>& engines) {
  Bytes largest;
  for (const Engine& engine : engines) largest = std::max(largest, engine.workspace);
  return largest;
}

ExecutionPlan::ExecutionPlan(const Engine& engine, const DeviceProperties& device)
    : descriptor_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan") {
  descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.configuration);
  if (const Descriptor* described = device.descriptor())
    descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *described);
  descriptor_.finalize();
}

Bytes ExecutionPlan::workspace() const {
  return Bytes{descriptor_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)};
}

std::string version() {
  const std::size_t number = cudnnGetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace memfathom::cudnn
