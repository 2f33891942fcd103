#include "estimator/models/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/suggest.h"
#include "estimator/models/grid_presets.h"
#include "estimator/models/preset_names.h"

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

// In lower case, without hyphens, underscores and blanks.
std::string spelt_with_dots(std::string_view name) {
  std::string spelt;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') continue;
    spelt.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return spelt;
}

double parameters_of(const KnownShape& s, double layers) {
  const double h = static_cast<double>(s.hidden);
  const double kv = h / static_cast<double>(s.heads) * static_cast<double>(s.kv_heads);
  const double block = 2 * h * h + 2 * h * kv + 3 * h * static_cast<double>(s.inner) + 2 * h;
  return layers * block + 2 * static_cast<double>(s.vocabulary) * h + h;
}

// The nearest published shape. Sizes that no depth of it can have get a wider or narrower one.
KnownShape shape_for(double parameters) {
  constexpr double kMaxLayers = 512;
  constexpr double kMaxExcess = 1.25;  // of a single block with its vocabulary
  KnownShape shape = kShapes.front();
  for (const KnownShape& known : kShapes) {
    if (std::abs(std::log(known.parameters / parameters)) <
        std::abs(std::log(shape.parameters / parameters)))
      shape = known;
  }
  while (parameters_of(shape, kMaxLayers) < parameters) {
    for (std::int64_t* size : {&shape.hidden, &shape.inner, &shape.heads, &shape.kv_heads})
      *size *= 2;
  }
  while (parameters_of(shape, 1) > kMaxExcess * parameters && shape.hidden / shape.heads > 2) {
    for (std::int64_t* size : {&shape.hidden, &shape.inner, &shape.vocabulary}) *size /= 2;
  }
  return shape;
}

}  // namespace

std::optional<Node> preset_config(std::string_view name) {
  const auto found = [&](auto form) -> const Preset* {
    const std::string wanted = form(name);
    for (const Preset& preset : presets()) {
      if (!preset.is_partial && form(preset.name) == wanted) return &preset;
    }
    return nullptr;
  };
  // With its dots first: without them opt-13b would be opt-1.3b.
  const Preset* preset = found(spelt_with_dots);
  if (preset == nullptr) preset = found(normalized_preset);
  if (preset == nullptr) return std::nullopt;
  return parse_json(preset->config, fmt::format("preset {}", preset->name), 0);
}

bool is_preset(std::string_view name) {
  return preset_config(name) || partial_preset_config(normalized_preset(name));
}

std::string unknown_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  std::string meant;
  if (const std::optional<std::string_view> near = nearest_name(name, names)) {
    meant = *near;
  } else if (const std::string start = normalized_preset(name); start.size() >= 3) {
    // "llama3" is the beginning of several.
    std::erase_if(names, [&](std::string_view known) {
      return !normalized_preset(known).starts_with(start);
    });
    constexpr std::size_t kMaxNamed = 3;
    const std::size_t others = names.size() - std::min(names.size(), kMaxNamed);
    names.resize(names.size() - others);
    meant = fmt::format("{}", fmt::join(names, ", "));
    if (others > 0) meant += fmt::format(" or one of {} more", others);
  }
  return fmt::format(
      "no preset has that name{}; `memfathom models` lists them, and a folder with a config.json "
      "can be given instead",
      meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
}

Node config_for_parameters(double parameters, std::vector<std::string>& assumptions) {
  const KnownShape shape = shape_for(parameters);
  // The depth is chosen so that the count comes out right.
  const double fixed = parameters_of(shape, 0);
  const double block = parameters_of(shape, 1) - fixed;
  const std::int64_t layers = std::max<std::int64_t>(1, std::llround((parameters - fixed) / block));
  const double billions = parameters_of(shape, static_cast<double>(layers)) / 1e9;
  assumptions.push_back(fmt::format(
      "only the size is known: a Llama-shaped model was assumed with hidden size {}, "
      "{} layers, {} heads ({} for keys and values), "
      "feed-forward {}, vocabulary {}: {} billion parameters",
      shape.hidden, layers, shape.heads, shape.kv_heads, shape.inner, shape.vocabulary,
      billions < 0.1 ? fmt::format("{:.2g}", billions) : fmt::format("{:.2f}", billions)));
  Node config = Node::map();
  config.set("model_type", Node::string("llama"));
  config.set("hidden_size", Node::integer(shape.hidden));
  config.set("intermediate_size", Node::integer(shape.inner));
  config.set("num_hidden_layers", Node::integer(layers));
  config.set("num_attention_heads", Node::integer(shape.heads));
  config.set("num_key_value_heads", Node::integer(shape.kv_heads));
  config.set("vocab_size", Node::integer(shape.vocabulary));
  config.set("hidden_act", Node::string("silu"));
  config.set("tie_word_embeddings", Node::boolean(false));
  return config;
}

}  // namespace memfathom
