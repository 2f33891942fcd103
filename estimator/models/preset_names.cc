#include "estimator/models/preset_names.h"

namespace memfathom {
namespace {

// Other names that people use, both sides normalized.
struct Alias {
  std::string_view name, preset;
};

constexpr Alias kAliases[] = {
    {"vitb", "vitbasepatch16224"},
    {"vitbase", "vitbasepatch16224"},
    {"vitl", "vitlargepatch16224"},
    {"vitlarge", "vitlargepatch16224"},
    {"vith", "vithugepatch14224"},
    {"vithuge", "vithugepatch14224"},
    {"sd15unet", "sd15"},
    {"stablediffusion15", "sd15"},
    {"stablediffusionv15", "sd15"},
    {"sdxlunet", "sdxl"},
    {"stablediffusionxl", "sdxl"},
    {"ddpm", "ddpmunet"},
    {"flux", "flux1dev"},
    {"fluxdev", "flux1dev"},
    {"fluxschnell", "flux1schnell"},
    {"vggt", "vggt1b"},
    {"ditxl2256", "ditxl2"},
    {"bertbaseuncased", "bertbase"},
    {"bertlargeuncased", "bertlarge"},
    {"inception", "inceptionv3"},
    // Trained further, of the same shape.
    {"qwen25coder05b", "qwen2505b"},
    {"qwen25coder15b", "qwen2515b"},
    {"qwen25coder3b", "qwen253b"},
    {"qwen25coder7b", "qwen257b"},
    {"qwen25coder14b", "qwen2514b"},
    {"qwen25coder32b", "qwen2532b"},
    {"qwen25math15b", "qwen2515b"},
    {"qwen25math7b", "qwen257b"},
    {"qwen25math72b", "qwen2572b"},
    {"deepseekr1distillqwen7b", "qwen257b"},
    {"deepseekr1distillqwen14b", "qwen2514b"},
    {"deepseekr1distillqwen32b", "qwen2532b"},
    {"deepseekr1distillllama8b", "llama318b"},
    {"deepseekr1distillllama70b", "llama3370b"},
    {"deepseekr1", "deepseekv3"},
    {"qwq32b", "qwen2532b"},
    {"vicuna7b", "llama27b"},
    {"vicuna13b", "llama213b"},
    {"phi35mini", "phi3mini"},
    {"qwen3coder30ba3b", "qwen330ba3b"},
    {"stablediffusionxlbase10", "sdxl"},
    {"mistralsmall324b", "mistralsmall24b"},
    {"magistralsmall2506", "mistralsmall24b"},
    {"magistralsmall2507", "mistralsmall24b"},
    {"devstralsmall2505", "mistralsmall24b"},
    {"devstralsmall2507", "mistralsmall24b"},
    {"tinyllamav11", "tinyllama11b"},
    {"phi414b", "phi4"},  // torchtune's name
    {"paligemma3bpt224", "paligemma3b224"},
    {"paligemma3bmix224", "paligemma3b224"},
};

}  // namespace

std::string normalized_preset(std::string_view name) {
  std::string normalized;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
    normalized.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  for (const Alias& alias : kAliases) {
    if (normalized == alias.name) return std::string(alias.preset);
  }
  return normalized;
}

}  // namespace memfathom
