#include "cli/observe/oom_text.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/render.h"
#include "cli/text/recommend_text.h"
#include "estimator/json/recommendation_json.h"

namespace memfathom {
namespace {

using Figure = std::pair<const char*, std::optional<Bytes> OomMessage::*>;

constexpr std::array<Figure, 9> kFigures{{{"tried", &OomMessage::tried},
                                          {"capacity", &OomMessage::capacity},
                                          {"free", &OomMessage::free},
                                          {"in_process", &OomMessage::in_process},
                                          {"in_others", &OomMessage::in_others},
                                          {"allocated", &OomMessage::allocated},
                                          {"reserved", &OomMessage::reserved},
                                          {"unallocated", &OomMessage::unallocated},
                                          {"outside", &OomMessage::outside}}};

const char* meaning_of(std::string_view figure) {
  if (figure == "tried") return "requested when it failed";
  if (figure == "capacity") return "the GPU's memory";
  if (figure == "free") return "free on the GPU";
  if (figure == "in_process") return "this process, all of it";
  if (figure == "in_others") return "other processes on the GPU";
  if (figure == "allocated") return "held by tensors";
  if (figure == "reserved") return "held by the caching allocator";
  if (figure == "unallocated") return "reserved, but held by no tensor";
  return "this process outside the allocator (context, NCCL, libraries)";
}

// Memory of other processes that would have been enough for the request.
bool others_are_in_the_way(const OomMessage& message) {
  return message.in_others && message.tried &&
         message.free.value_or(Bytes{}) + *message.in_others >= *message.tried;
}

}  // namespace

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

std::string oom_text(const OomMessage& message, const Context& context) {
  Table table({{"figure"}, {"memory", Align::kRight}, {"meaning"}});
  for (const auto& [name, member] : kFigures) {
    if (const std::optional<Bytes>& bytes = message.*member)
      table.add_row({name, to_string(*bytes), meaning_of(name)});
  }
  std::string text;
  if (context.format != Format::kCsv) {
    text = fmt::format(
        "{}: out of memory{}, line {}{}\n\n", enum_name(message.source),
        message.gpu ? fmt::format(" on GPU {}", *message.gpu) : "", message.line,
        message.messages > 1 ? fmt::format(" (the last of {} messages)", message.messages) : "");
  }
  text += rendered(table, context);
  if (context.format == Format::kCsv) return text;
  for (const std::string& sentence : oom_advice(message)) text += fmt::format("- {}\n", sentence);
  return text;
}

nlohmann::ordered_json oom_json(const OomMessage& message) {
  nlohmann::ordered_json json{{"schema", "memfathom.oom/1"},
                              {"source", enum_name(message.source)},
                              {"line", message.line},
                              {"messages", message.messages}};
  json["gpu_index"] = message.gpu ? nlohmann::ordered_json(*message.gpu) : nullptr;
  for (const auto& [name, member] : kFigures) {
    const std::optional<Bytes>& bytes = message.*member;
    json[fmt::format("{}_bytes", name)] =
        bytes ? nlohmann::ordered_json(bytes->count()) : nlohmann::ordered_json(nullptr);
  }
  json["advice"] = oom_advice(message);
  return json;
}

std::string remedy_text(const OomRemedy& remedy, const JobInput& input, const Context& context) {
  const Bytes peak = remedy.estimate.totals.device_peak;
  if (remedy.estimate.verdict.status != VerdictStatus::kDoesNotFit) {
    return fmt::format(
        "\nthe job as given should fit with {}: what ran was not this job (lengths, batch, "
        "versions), "
        "or the GPU was not empty; memfathom capture records the script itself\n",
        to_string(peak));
  }
  if (!remedy.change) {
    return fmt::format("\nthe job is estimated at {}, and no combination of changes makes it fit\n",
                       to_string(peak));
  }
  return fmt::format("\nthe job is estimated at {}; the smallest change that fits takes {}\n",
                     to_string(peak), to_string(remedy.change->device_peak)) +
         configuration_text(*remedy.change, "change", input, context);
}

nlohmann::ordered_json remedy_json(const OomRemedy& remedy, const JobInput& input) {
  nlohmann::ordered_json json{
      {"device_peak_bytes", remedy.estimate.totals.device_peak.count()},
      {"fits", remedy.estimate.verdict.status != VerdictStatus::kDoesNotFit},
      {"change", nullptr}};
  if (remedy.change) json["change"] = configuration_json(*remedy.change, input);
  return json;
}

}  // namespace memfathom
