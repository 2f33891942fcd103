#include "estimator/readers/named_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/document_path.h"
#include "core/lowercase.h"

namespace memfathom {
namespace {

// The parts of "Qwen2.5-7B-Instruct-GPTQ-Int4" in lower case, without its owner.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : lowercase(std::string(name.substr(name.rfind('/') + 1)))) {
    if (c == '-' || c == '_' || c == '.') {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

using Parts = std::vector<std::string>;

bool has(const Parts& parts, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return std::find(parts.begin(), parts.end(), word) != parts.end();
  });
}

// 4 of "int4", "4bit", "4bits", "w4a16" and of "4", "bit".
int bits_in(const Parts& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    for (const int bits : {2, 3, 4, 8}) {
      const std::string digit = std::to_string(bits);
      const bool is_apart = part == digit && i + 1 < parts.size() &&
                            (parts[i + 1] == "bit" || parts[i + 1] == "bits");
      if (is_apart || part == "int" + digit || part == digit + "bit" || part == digit + "bits" ||
          part.starts_with("w" + digit + "a"))
        return bits;
    }
  }
  return 0;
}

// Forms that no layer here has: llama.cpp's files, MLX's, and methods of below four bits.
bool is_other_form(const Parts& parts) {
  const auto is_llama_cpp = [](const std::string& part) {  // q4_k_m, iq3_xs
    const std::string_view digits =
        std::string_view(part).substr(std::min(part.find('q') + 1, part.size()));
    return (part.starts_with('q') || part.starts_with("iq")) && digits.size() == 1 &&
           std::isdigit(static_cast<unsigned char>(digits.front())) != 0;
  };
  return has(parts, {"gguf",  "ggml",  "mlx",  "aqlm",    "hqq",    "eetq",      "exl2",  "exl3",
                     "quip",  "quip#", "vptq", "spqr",    "higgs",  "autoround", "qat",   "nvfp4",
                     "mxfp4", "mxfp8", "fp4",  "torchao", "bitnet", "int4wo",    "quanto"}) ||
         std::any_of(parts.begin(), parts.end(), is_llama_cpp);
}

Node packed(const char* method, int bits) {
  Node said = Node::map();
  said.set("method", Node::string(method));
  said.set("bits", Node::integer(bits));
  return said;
}

// Unsloth's copies quantize the scales as well (bnb_4bit_use_double_quant of their config.json).
Node of_bitsandbytes(std::string_view name, int bits) {
  if (bits == 8) return Node::string("int8");
  return Node::string(lowercase(std::string(name)).starts_with("unsloth/") ? "nf4-double" : "nf4");
}

std::string whose(const Node& document) {
  const Node* preset = value_at(document, "model.preset");
  return preset != nullptr && preset->is_string() ? lowercase(preset->as_string()) : "";
}

// Weights in few bits are not trained themselves: adapters are, or they are loaded as whole ones.
bool trains_the_weights(const Node& document) {
  const Node* mode = value_at(document, "training.mode");
  const bool is_training = mode == nullptr || !mode->is_string() || mode->as_string() == "train";
  return is_training && value_at(document, "training.lora") == nullptr;
}

}  // namespace

NamedBits bits_in_name(std::string_view name) {
  const Parts parts = parts_of(name);
  const int bits = bits_in(parts);
  const bool is_mlx = lowercase(std::string(name)).starts_with("mlx-community/");
  if (is_other_form(parts) || is_mlx || bits == 2 || bits == 3)
    return {.form = "a form of its own", .quantization = {}};
  if (has(parts, {"awq"})) return {"AWQ", packed("awq", bits == 8 ? 8 : 4)};
  if (has(parts, {"gptq"}) || (bits == 4 && has(parts, {"w4a16"})))
    return {has(parts, {"gptq"}) ? "GPTQ" : "W4A16", packed("gptq", bits == 8 ? 8 : 4)};
  if (has(parts, {"fp8", "w8a8", "w8a16"}))
    return {has(parts, {"fp8"}) ? "FP8" : "W8", Node::string("fp8")};
  if (has(parts, {"bnb", "nf4", "bitsandbytes"}))
    return {"bitsandbytes", of_bitsandbytes(name, bits)};
  if (has(parts, {"4bit", "8bit"}) || (bits != 0 && has(parts, {"bit", "bits"})))
    return {"bitsandbytes", of_bitsandbytes(name, bits)};
  // "chatglm2-6b-int4": which method, the name does not say.
  return {bits != 0 ? fmt::format("{} bits", bits) : "", {}};
}

void count_named_bits(const std::string& name, const std::string& file, Node& document,
                      std::vector<std::string>& assumptions, std::vector<UnreadKey>& unread) {
  const NamedBits named = bits_in_name(name);
  if (named.form.empty() || value_at(document, "training.quantization") != nullptr) return;
  // The preset describes the quantized model itself.
  if (!bits_in_name(whose(document)).form.empty()) return;
  if (!named.quantization.is_null() && !trains_the_weights(document)) {
    document.assign("training.quantization", named.quantization);
    // What is not in few bits is in 16, as these methods compute.
    if (value_at(document, "training.precision") == nullptr)
      document.assign("training.precision", Node::string("bf16"));
    assumptions.push_back(
        fmt::format("the weights of {} are counted as {} stores them, by its name, and the others "
                    "in 16 bits; --quantization none counts whole ones",
                    name, named.form));
    return;
  }
  assumptions.push_back(
      fmt::format("{}: its name says weights in few bits; whole ones are counted (--load-in-4bit, "
                  "--load-in-8bit, --quantization)",
                  name));
  unread.push_back({file, name, "precision", "", "", "training.quantization"});
}

}  // namespace memfathom
