#include "estimator/models/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/suggest.h"
#include "estimator/models/vision/families.h"

namespace memfathom {
namespace {

struct KnownShape {
  double parameters;
  std::int64_t hidden, inner, layers, heads, kv_heads, vocabulary;
};

// Published decoder shapes, by size: what a model of that many parameters usually looks like.
constexpr auto kShapes = std::to_array<KnownShape>({
    {0.135e9, 576, 1536, 30, 9, 3, 49152},
    {0.5e9, 896, 4864, 24, 14, 2, 151936},
    {1.1e9, 2048, 5632, 22, 32, 4, 32000},
    {3.2e9, 3072, 8192, 28, 24, 8, 128256},
    {6.7e9, 4096, 11008, 32, 32, 32, 32000},
    {8.0e9, 4096, 14336, 32, 32, 8, 128256},
    {13.0e9, 5120, 13824, 40, 40, 40, 32000},
    {32.5e9, 5120, 27648, 64, 40, 8, 152064},
    {70.6e9, 8192, 28672, 80, 64, 8, 128256},
    {405.0e9, 16384, 53248, 126, 128, 8, 128256},
});

double parameters_of(const KnownShape& s, double layers) {
  const double h = static_cast<double>(s.hidden);
  const double kv = h / static_cast<double>(s.heads) * static_cast<double>(s.kv_heads);
  const double block = 2 * h * h + 2 * h * kv + 3 * h * static_cast<double>(s.inner) + 2 * h;
  return layers * block + 2 * static_cast<double>(s.vocabulary) * h + h;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset>
      kPresets{
          {"gpt2", "GPT-2 small, 124 M",
           R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12})"},
          {"gpt2-medium", "GPT-2 medium, 355 M",
           R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":1024,"n_layer":24,"n_head":16})"},
          {"gpt2-large", "GPT-2 large, 774 M",
           R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":1280,"n_layer":36,"n_head":20})"},
          {"gpt2-xl", "GPT-2 XL, 1.56 B",
           R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":1600,"n_layer":48,"n_head":25})"},
          {"tinyllama-1.1b", "TinyLlama 1.1 B",
           R"({"model_type":"llama","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":22,"num_attention_heads":32,"num_key_value_heads":4,"vocab_size":32000,"max_position_embeddings":2048,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-2-7b", "Llama 2, 6.74 B",
           R"({"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":32000,"max_position_embeddings":4096,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-2-13b", "Llama 2, 13.0 B",
           R"({"model_type":"llama","hidden_size":5120,"intermediate_size":13824,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":40,"vocab_size":32000,"max_position_embeddings":4096,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-2-70b", "Llama 2, 69.0 B",
           R"({"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":32000,"max_position_embeddings":4096,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-3-8b", "Llama 3, 8.03 B",
           R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":8192,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-3-70b", "Llama 3, 70.6 B",
           R"({"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":8192,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"llama-3.2-1b", "Llama 3.2, 1.24 B",
           R"({"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":128256,"max_position_embeddings":131072,"hidden_act":"silu","tie_word_embeddings":true})"},
          {"llama-3.2-3b", "Llama 3.2, 3.21 B",
           R"({"model_type":"llama","hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":28,"num_attention_heads":24,"num_key_value_heads":8,"head_dim":128,"vocab_size":128256,"max_position_embeddings":131072,"hidden_act":"silu","tie_word_embeddings":true})"},
          {"mistral-7b",
           "Mistral, 7.24 B", R"({"model_type":"mistral","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32000,"max_position_embeddings":32768,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"mixtral-8x7b", "Mixtral, 46.7 B in 8 experts",
           R"({"model_type":"mixtral","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":32000,"max_position_embeddings":32768,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"qwen2-0.5b", "Qwen2, 494 M",
           R"({"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,"num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,"vocab_size":151936,"max_position_embeddings":131072,"hidden_act":"silu","tie_word_embeddings":true})"},
          {"qwen2-7b", "Qwen2, 7.62 B",
           R"({"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,"max_position_embeddings":131072,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"phi-2", "Phi-2, 2.78 B",
           R"({"model_type":"phi","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":51200,"max_position_embeddings":2048,"hidden_act":"gelu_new","partial_rotary_factor":0.4,"tie_word_embeddings":false})"},
          {"bert-base", "BERT base, 110 M",
           R"({"model_type":"bert","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"vocab_size":30522,"max_position_embeddings":512,"hidden_act":"gelu"})"},
          {"bert-large", "BERT large, 336 M",
           R"({"model_type":"bert","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"num_attention_heads":16,"vocab_size":30522,"max_position_embeddings":512,"hidden_act":"gelu"})"},
          {"t5-base", "T5 base, 223 M",
           R"({"model_type":"t5","d_model":768,"d_ff":3072,"d_kv":64,"num_layers":12,"num_heads":12,"vocab_size":32128})"},
          {"t5-large", "T5 large, 738 M",
           R"({"model_type":"t5","d_model":1024,"d_ff":4096,"d_kv":64,"num_layers":24,"num_heads":16,"vocab_size":32128})"},
          {"bloom-560m", "BLOOM, 559 M",
           R"({"model_type":"bloom","hidden_size":1024,"n_layer":24,"n_head":16,"vocab_size":250880})"},
          {"bloom-7b1", "BLOOM, 7.07 B",
           R"({"model_type":"bloom","hidden_size":4096,"n_layer":30,"n_head":32,"vocab_size":250880})"},
          {"qwen3-30b-a3b", "Qwen3, 30.5 B in 128 experts",
           R"({"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"vocab_size":151936,"max_position_embeddings":40960,"hidden_act":"silu","tie_word_embeddings":false})"},
          {"t5-v1.1-xxl-encoder", "T5 v1.1 XXL's encoder, 4.76 B: the text encoder of CogVideoX",
           R"({"model_type":"t5","architectures":["T5EncoderModel"],"d_model":4096,"d_ff":10240,"d_kv":64,"num_layers":24,"num_heads":64,"vocab_size":32128,"feed_forward_proj":"gated-gelu"})"},
      };
  return kPresets;
}

std::optional<Node> preset_config(std::string_view name) {
  const std::string wanted = normalized_preset(name);
  for (const Preset& preset : presets()) {
    if (normalized_preset(preset.name) == wanted)
      return parse_json(preset.config, fmt::format("preset {}", preset.name), 0);
  }
  return std::nullopt;
}

bool is_preset(std::string_view name) {
  if (preset_config(name)) return true;
  const std::span<const VisionPreset> vision = vision_presets();
  return std::any_of(vision.begin(), vision.end(),
                     [wanted = normalized_preset(name)](const auto& preset) {
                       return normalized_preset(preset.name) == wanted;
                     });
}

std::string unknown_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  for (const VisionPreset& preset : vision_presets()) names.push_back(preset.name);
  std::string meant;
  if (const std::optional<std::string_view> near = nearest_name(name, names)) {
    meant = *near;
  } else if (const std::string start = normalized_preset(name); start.size() >= 3) {
    // "llama3" is the beginning of several.
    std::erase_if(names, [&](std::string_view known) {
      return !normalized_preset(known).starts_with(start);
    });
    meant = fmt::format("{}", fmt::join(names, " or "));
  }
  return fmt::format(
      "no preset has that name{}; `memfathom models` lists them, and a folder with a config.json "
      "serves as well",
      meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
}

Node config_for_parameters(double parameters, std::vector<std::string>& assumptions) {
  const KnownShape* nearest = &kShapes.front();
  for (const KnownShape& shape : kShapes) {
    if (std::abs(std::log(shape.parameters / parameters)) <
        std::abs(std::log(nearest->parameters / parameters)))
      nearest = &shape;
  }
  // The depth is chosen so that the count comes out right.
  const double fixed = parameters_of(*nearest, 0);
  const double block = parameters_of(*nearest, 1) - fixed;
  const std::int64_t layers = std::max<std::int64_t>(1, std::llround((parameters - fixed) / block));
  assumptions.push_back(
      fmt::format("only the size is known: a Llama-shaped model was assumed with hidden size {}, "
                  "{} layers, {} heads ({} for keys and values), "
                  "feed-forward {}, vocabulary {}: {:.2f} billion parameters",
                  nearest->hidden, layers, nearest->heads, nearest->kv_heads, nearest->inner,
                  nearest->vocabulary, parameters_of(*nearest, static_cast<double>(layers)) / 1e9));
  Node config = Node::map();
  config.set("model_type", Node::string("llama"));
  config.set("hidden_size", Node::integer(nearest->hidden));
  config.set("intermediate_size", Node::integer(nearest->inner));
  config.set("num_hidden_layers", Node::integer(layers));
  config.set("num_attention_heads", Node::integer(nearest->heads));
  config.set("num_key_value_heads", Node::integer(nearest->kv_heads));
  config.set("vocab_size", Node::integer(nearest->vocabulary));
  config.set("hidden_act", Node::string("silu"));
  config.set("tie_word_embeddings", Node::boolean(false));
  return config;
}

}  // namespace memfathom
