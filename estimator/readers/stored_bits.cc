// The quantization_config of a checkpoint that was saved in few bits.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "estimator/readers/formats.h"

namespace memfathom {
namespace {

Node packed(const char* method, const Node* bits, const Node* group, const Node* whole) {
  Node said = Node::map();
  said.set("method", Node::string(method));
  if (bits != nullptr && bits->is_number()) said.set("bits", *bits);
  if (group != nullptr && group->is_number()) said.set("group_size", *group);
  if (whole == nullptr || !whole->is_list() || whole->items().empty()) return said;
  Node names = Node::list();
  for (const Node& name : whole->items()) {
    if (name.is_string()) names.append(name);
  }
  said.set("not_converted", std::move(names));
  return said;
}

const Node* either(const Node& tree, const char* one, const char* other) {
  const Node* found = value_at(tree, one);
  return found != nullptr ? found : value_at(tree, other);
}

// llm-compressor's: the first group of layers stands for all; 4-bit integers are packed like
// GPTQ's.
bool set_compressed(const Node& config, ParsedFile& parsed) {
  const Node* groups = value_at(config, "config_groups");
  if (groups == nullptr || !groups->is_map() || groups->entries().empty()) return false;
  const Node* weights = value_at(groups->entries().front(), "weights");
  if (weights == nullptr || !weights->is_map()) return false;
  const Node* bits = value_at(*weights, "num_bits");
  const Node* whole = value_at(config, "ignore");
  if (bits == nullptr || !bits->is_number()) return false;
  if (bits->as_int(1, 16) == 8) {
    parsed.set("training.quantization", packed("fp8", nullptr, nullptr, whole));
    return true;
  }
  if (bits->as_int() != 4) return false;
  parsed.set("training.quantization",
             packed("gptq", bits, value_at(*weights, "group_size"), whole));
  return true;
}

bool set_method(const Node& config, ParsedFile& parsed) {
  const std::string method = text_at(config, "quant_method");
  const Node* whole = value_at(config, "modules_to_not_convert");
  const auto set = [&](Node said) {
    parsed.set("training.quantization", std::move(said));
    return true;
  };
  if (method == "gptq")
    return set(packed("gptq", value_at(config, "bits"), value_at(config, "group_size"), whole));
  if (method == "awq")
    return set(packed("awq", either(config, "bits", "w_bit"),
                      either(config, "group_size", "q_group_size"), whole));
  if (method == "fp8" || method == "fbgemm_fp8") return set(packed("fp8", nullptr, nullptr, whole));
  if (method == "mxfp4") return set(Node::string("mxfp4"));
  return method == "compressed-tensors" && set_compressed(config, parsed);
}

}  // namespace

void read_stored_bits(ParsedFile& parsed) {
  const Node* config = value_at(parsed.content, "quantization_config");
  if (config == nullptr || !config->is_map()) return;
  if (is_true_at(*config, "load_in_8bit")) {
    parsed.set("training.quantization", Node::string("int8"));
  } else if (is_true_at(*config, "load_in_4bit")) {
    const bool twice = is_true_at(*config, "bnb_4bit_use_double_quant");
    parsed.set("training.quantization", Node::string(twice ? "nf4-double" : "nf4"));
  } else if (!set_method(*config, parsed)) {
    leave_open(
        "quantization_config", "precision",
        fmt::format("{}: its quantization_config; weights are counted unquantized", parsed.file),
        parsed);
  }
}

}  // namespace memfathom
