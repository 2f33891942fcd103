#include "kernels/devices/cuda/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "kernels/devices/cuda/cudnn/execute.h"
#include "kernels/devices/cuda/layout.h"
#include "kernels/devices/cuda/status.h"

namespace memfathom::cuda {
namespace {

// The three tensors of a call in forward terms.
struct Roles {
  const Operand& input;
  const Operand& weight;
  const Operand& output;
};

Roles roles_of(const ConvolutionCall& call) {
  switch (call.query.kind) {
    case ConvolutionKind::kForward: break;
    case ConvolutionKind::kDataGradient: return {call.dx, call.w, call.dy};
    case ConvolutionKind::kWeightGradient: return {call.x, call.dw, call.dy};
  }
  return {call.x, call.w, call.y};
}

[[noreturn]] void refuse(const ConvolutionCall& call, const std::string& why) {
  throw Error(ErrorKind::kInternal, fmt::format("{}: {}", to_string(call.query), why));
}

// The arguments of execute(); a transposed convolution is the data gradient of a plain one.
std::array<cudnn::TensorBinding, 3> operands_of(const ConvolutionCall& call) {
  const Roles roles = roles_of(call);
  const bool swapped = call.query.transposed;
  return {{{cudnn::kX, swapped ? roles.output.data : roles.input.data},
           {cudnn::kW, roles.weight.data},
           {cudnn::kY, swapped ? roles.input.data : roles.output.data}}};
}

std::int64_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::int64_t alignment = cudnn::kFullAlignment;
  while (address % static_cast<std::uintptr_t>(alignment) != 0) alignment /= 2;
  return alignment;
}

Bytes provided_workspace(const ConvolutionCall& call) {
  return call.workspace ? size_of(call.workspace.shape, call.workspace.dtype) : Bytes{};
}

void check_operand(const ConvolutionCall& call, const char* name, const Operand& operand,
                   const Shape* shape) {
  if (!operand) refuse(call, fmt::format("the {} is missing", name));
  if (operand.dtype != call.query.dtype)
    refuse(call, fmt::format("the {} is {}", name, to_string(operand.dtype)));
  if (shape != nullptr && operand.shape != *shape) {
    refuse(call, fmt::format("the {} has extents {}", name, to_string(operand.shape)));
  }
  const bool channels_last = call.query.channels_last && operand.shape.rank() > 3;
  if (!is_packed(operand, channels_last)) {
    refuse(call, fmt::format("the {} of strides {} is not dense in the layout of the query", name,
                             to_string(operand.strides)));
  }
}

// The output's extents in PyTorch's terms, from cuDNN's (1-D was widened to 2-D).
Shape output_shape(const ConvolutionQuery& query) {
  const cudnn::Convolution convolution = cudnn::to_cudnn(query);
  const Shape& wide = query.transposed ? convolution.x : convolution.y;
  Shape shape;
  for (int d = 0; d < wide.rank(); ++d) {
    if (query.input.rank() < wide.rank() && d == 2) continue;
    shape.push_back(wide[d]);
  }
  return shape;
}

}  // namespace

// An engine that cuDNN proposes may fail to build; then the next one is tried, as in PyTorch.
CudnnConvolutions::Planned CudnnConvolutions::make_plans(
    const ConvolutionQuery& query, const cudnn::Convolution::Alignment& alignment,
    std::optional<Bytes> limit) {
  cudnn::Convolution convolution = cudnn::to_cudnn(query);
  convolution.alignment = alignment;
  Planned plans{cudnn::Graph(convolution), {}};
  std::string why;
  ErrorKind kind = ErrorKind::kEnvironment;
  const auto add = [&](const cudnn::Engine& engine, std::size_t place) {
    try {
      cudnn::ExecutionPlan plan(engine, dnn_.properties());
      const Bytes workspace = plan.workspace();
      if (limit && workspace > *limit) {
        why = fmt::format("its workspace of {} B is not available", workspace.count());
        return;
      }
      plans.candidates.push_back({std::move(plan), workspace, place});
    } catch (const Error& error) {
      why = error.what();
      if (error.kind() == ErrorKind::kOutOfMemory) kind = error.kind();
    }
  };
  if (!query.benchmark) add(cudnn::first_engine(plans.graph, dnn_.properties()), 0);
  if (plans.candidates.empty()) {
    std::size_t place = 0;
    for (const cudnn::Engine& engine : cudnn::all_engines(plans.graph, dnn_.properties())) {
      if (query.benchmark || plans.candidates.empty()) add(engine, place);
      ++place;
    }
  }
  if (plans.candidates.empty()) {
    throw Error(
        kind, fmt::format("{}: cuDNN could build none of its engines ({})", to_string(query), why));
  }
  return plans;
}

CudnnConvolutions::Planned& CudnnConvolutions::planned(const ConvolutionQuery& query) {
  return plans_.get(to_string(query), [&] { return make_plans(query); });
}

CudnnConvolutions::Planned& CudnnConvolutions::planned(const ConvolutionCall& call) {
  const auto [x, w, y] = operands_of(call);
  const cudnn::Convolution::Alignment alignment{alignment_of(x.data), alignment_of(w.data),
                                                alignment_of(y.data)};
  if (alignment == cudnn::Convolution::Alignment{}) return planned(call.query);
  // The provided workspace changes once an engine for aligned tensors is chosen.
  const Bytes given = provided_workspace(call);
  const std::string key = fmt::format("{} aligned to {}, {} and {}, in {} B", to_string(call.query),
                                      alignment.x, alignment.w, alignment.y, given.count());
  return plans_.get(key, [&] { return make_plans(call.query, alignment, given); });
}

Bytes CudnnConvolutions::workspace(const ConvolutionQuery& query) {
  const Planned& plans = planned(query);
  if (plans.candidates.size() == 1) return plans.candidates.front().workspace;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  Bytes largest;
  for (const Candidate& candidate : plans.candidates) {
    if (candidate.workspace <= Bytes{static_cast<std::int64_t>(free)})
      largest = std::max(largest, candidate.workspace);
  }
  return largest;
}

void CudnnConvolutions::prepare(const ConvolutionCall& call) {
  const Roles roles = roles_of(call);
  const Shape output = output_shape(call.query);
  check_operand(call, "input", roles.input, &call.query.input);
  check_operand(call, "weight", roles.weight, &call.query.weight);
  check_operand(call, "output", roles.output, &output);
  const Planned& plans = planned(call);
  const auto fits = [&](const Candidate& candidate) {
    return candidate.workspace <= provided_workspace(call);
  };
  if (std::none_of(plans.candidates.begin(), plans.candidates.end(), fits)) {
    refuse(call,
           fmt::format("the workspace has {} B; cuDNN needs {} B", provided_workspace(call).count(),
                       plans.candidates.front().workspace.count()));
  }
}

void CudnnConvolutions::execute(const ConvolutionCall& call, const Candidate& candidate) {
  cudnn::execute(dnn_.handle(), candidate.plan, operands_of(call),
                 candidate.workspace > Bytes{} ? call.workspace.data : nullptr);
}

float CudnnConvolutions::time_of(const ConvolutionCall& call, const Candidate& candidate) {
  const Event begin = make_event();
  const Event end = make_event();
  check(cudaEventRecord(begin.get(), dnn_.stream()), "cudaEventRecord");
  execute(call, candidate);
  check(cudaEventRecord(end.get(), dnn_.stream()), "cudaEventRecord");
  check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return milliseconds;
}

void CudnnConvolutions::choose_fastest(const ConvolutionCall& call, Planned& plans) {
  float best = std::numeric_limits<float>::infinity();
  std::optional<Candidate> fastest;
  std::exception_ptr why;
  for (Candidate& candidate : plans.candidates) {
    if (candidate.workspace > provided_workspace(call)) continue;
    try {
      execute(call, candidate);  // the first run loads code, and some engines fail only here
    } catch (const cudnn::StatusError& error) {
      if (!cudnn::is_recoverable(error.status())) throw;  // a failed launch poisons the context
      why = std::current_exception();
      continue;
    }
    const float milliseconds = time_of(call, candidate);
    if (milliseconds >= best) continue;
    best = milliseconds;
    fastest = std::move(candidate);
  }
  if (!fastest) std::rethrow_exception(why);
  plans.candidates.clear();
  plans.candidates.push_back(std::move(fastest).value());
}

// Tries the engines after the rejected one in cuDNN's order, as PyTorch does. False if none of them
// supports the call with this workspace.
bool CudnnConvolutions::run_next_engine(const ConvolutionCall& call, Planned& plans) {
  std::vector<cudnn::Engine> engines = cudnn::all_engines(plans.graph, dnn_.properties());
  for (std::size_t place = plans.candidates.front().place + 1; place < engines.size(); ++place) {
    if (engines[place].workspace > provided_workspace(call)) continue;
    try {
      cudnn::ExecutionPlan plan(engines[place], dnn_.properties());
      const Bytes workspace = plan.workspace();
      Candidate candidate{std::move(plan), workspace, place};
      if (workspace > provided_workspace(call)) continue;
      execute(call, candidate);
      plans.candidates.front() = std::move(candidate);
      return true;
    } catch (const cudnn::StatusError& error) {
      if (!cudnn::is_recoverable(error.status())) throw;
    }
  }
  return false;
}

void CudnnConvolutions::run(const ConvolutionCall& call) {
  Planned& plans = planned(call);
  if (plans.candidates.size() > 1) choose_fastest(call, plans);
  try {
    execute(call, plans.candidates.front());
  } catch (const cudnn::StatusError& error) {
    if (!cudnn::is_recoverable(error.status()) || !run_next_engine(call, plans)) throw;
  }
}

}  // namespace memfathom::cuda
