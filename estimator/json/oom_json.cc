#include "estimator/json/oom_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace memfathom {
namespace {

// Memory of other processes that would have been enough for the request.
bool others_are_in_the_way(const OomMessage& message) {
  return message.in_others && message.tried &&
         message.free.value_or(Bytes{}) + *message.in_others >= *message.tried;
}

}  // namespace

std::vector<OomFigure> oom_figures(const OomMessage& message) {
  return {{"tried", message.tried, "requested when it failed"},
          {"capacity", message.capacity, "the GPU's memory"},
          {"free", message.free, "free on the GPU"},
          {"in_process", message.in_process, "this process, all of it"},
          {"in_others", message.in_others, "other processes on the GPU"},
          {"allocated", message.allocated, "held by tensors"},
          {"reserved", message.reserved, "held by the caching allocator"},
          {"unallocated", message.unallocated, "reserved, but held by no tensor"},
          {"outside", message.outside,
           "this process outside the allocator (context, NCCL, libraries)"}};
}

std::vector<std::string> oom_advice(const OomMessage& message) {
  std::vector<std::string> advice;
  switch (message.source) {
    case OomSource::kPytorch: break;
    case OomSource::kJax:
      advice.emplace_back(
          "JAX reserves 75 % of the GPU at start: XLA_PYTHON_CLIENT_MEM_FRACTION changes the "
          "share, XLA_PYTHON_CLIENT_PREALLOCATE=false allocates as needed");
      break;
    case OomSource::kVllm:
      advice.emplace_back(
          "vLLM's cache does not fit next to the weights: lower max_model_len, raise "
          "gpu_memory_utilization, or use more GPUs");
      break;
    case OomSource::kCublas:
    case OomSource::kCudnn:
    case OomSource::kNccl:
    case OomSource::kCuda:
      advice.emplace_back(
          "memory outside PyTorch's caching allocator ran out: the allocator holds the rest of the "
          "GPU; leave room with torch.cuda.set_per_process_memory_fraction, or free the cache "
          "before this call");
      break;
  }
  if (message.tried && message.unallocated && *message.unallocated >= *message.tried) {
    advice.push_back(fmt::format(
        "fragmentation: {} were reserved but held by no tensor, more than the {} requested; "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets the allocator use them",
        to_string(*message.unallocated), to_string(*message.tried)));
  }
  if (others_are_in_the_way(message)) {
    advice.push_back(fmt::format("other processes hold {}: end them, or choose another GPU",
                                 to_string(*message.in_others)));
  }
  if (message.tensors_needed() && message.capacity) {
    advice.push_back(fmt::format(
        "the tensors and this request take {} of the GPU's {}, and the step may need more after "
        "that; memfathom capture or memfathom recommend finds what fits",
        to_string(*message.tensors_needed()), to_string(*message.capacity)));
  }
  return advice;
}

nlohmann::ordered_json oom_json(const OomMessage& message) {
  nlohmann::ordered_json json{{"schema", "memfathom.oom/1"},
                              {"source", enum_name(message.source)},
                              {"line", message.line},
                              {"messages", message.messages}};
  json["gpu_index"] = message.gpu ? nlohmann::ordered_json(*message.gpu) : nullptr;
  for (const OomFigure& figure : oom_figures(message)) {
    json[fmt::format("{}_bytes", figure.name)] =
        figure.bytes ? nlohmann::ordered_json(figure.bytes->count()) : nullptr;
  }
  json["advice"] = oom_advice(message);
  return json;
}

}  // namespace memfathom
