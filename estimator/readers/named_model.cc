#include "estimator/readers/named_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/lowercase.h"
#include "estimator/models/preset_names.h"
#include "estimator/models/presets.h"
#include "estimator/readers/named_files.h"
#include "estimator/readers/published_sizes.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

// owner/model or model, in the letters the hub allows: nothing that could leave the cache folder.
bool is_hub_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && name.size() <= 200 && std::all_of(name.begin(), name.end(), allowed) &&
         std::count(name.begin(), name.end(), '/') <= 1 && name.find("..") == std::string::npos &&
         name.front() != '/' && name.back() != '/';
}

// The commit that `main` points to, as the libraries record it.
std::string recorded_commit(const fs::path& model) {
  std::ifstream file(model / "refs" / "main");
  std::array<char, 64> text{};
  file.read(text.data(), text.size());
  std::string commit(text.data(), static_cast<std::size_t>(file.gcount()));
  const auto end = std::find_if(commit.begin(), commit.end(),
                                [](unsigned char c) { return std::isxdigit(c) == 0; });
  commit.erase(end, commit.end());
  return commit;
}

std::optional<fs::path> snapshot_of(const std::string& name, const fs::path& cache) {
  if (cache.empty() || !is_hub_name(name)) return std::nullopt;
  std::string folder = "models--" + name;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos)
    folder.replace(slash, 1, "--");
  const fs::path snapshots = cache / folder / "snapshots";
  if (const std::string commit = recorded_commit(cache / folder);
      !commit.empty() && describes_a_model(snapshots / commit))
    return snapshots / commit;
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(snapshots, error), end; !error && at != end; at.increment(error)) {
    if (describes_a_model(at->path())) found.push_back(at->path());
  }
  // Without a record of `main` one snapshot is an answer, several are a guess.
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

double parameters_in(const std::string& name);

// "DeepSeek-R1-0528-Qwen3-8B" is no DeepSeek-R1, and "Qwen2-57B" no Qwen2.5-7B, though their
// letters are the same: a size in the name must be the preset's, or be in the part of it that names
// one.
bool has_size_of(const std::string& stem, const std::string& name) {
  const double size = parameters_in(name);
  if (size == 0) return true;
  const std::string normalized = normalized_preset(stem);
  for (const Preset& preset : presets()) {
    if (normalized_preset(preset.name) != normalized) continue;
    const double published = parameters_in(std::string(preset.name));
    if (published > 0) return published == size;
  }
  return parameters_in(stem) == size;
}

std::optional<NamedModel> preset_like(const std::string& name) {
  std::string stem = name.substr(name.rfind('/') + 1);
  constexpr std::string_view kMaker = "Meta-";  // "Meta-Llama-3-8B" is Llama 3
  if (stem.starts_with(kMaker)) stem.erase(0, kMaker.size());
  while (true) {
    if (is_preset(stem) && has_size_of(stem, name)) {
      return NamedModel{
          "preset", stem,
          fmt::format("{} is taken to have the shape of the preset {}; give its config.json if it "
                      "differs",
                      name, stem)};
    }
    const std::size_t cut = stem.rfind('-');
    if (cut == std::string::npos || cut == 0) return std::nullopt;
    stem.erase(cut);
  }
}

// "dolphin-2.5-mixtral-8x7b": experts are counted in no other way, so that the part with an "x" in
// it names the shape.
std::optional<NamedModel> mixture_in(const std::string& name) {
  const std::string stem = name.substr(name.rfind('/') + 1);
  for (std::size_t start = stem.find('-'); start != std::string::npos;
       start = stem.find('-', start + 1)) {
    std::string part = stem.substr(start + 1);
    while (part.find('x') != std::string::npos) {
      const std::size_t size = part.find_first_of("0123456789");
      const bool is_mixture = size != std::string::npos && size + 1 < part.size() &&
                              part[size + 1] == 'x' && is_preset(part);
      if (is_mixture)
        return NamedModel{"preset", part,
                          fmt::format("{} is taken to have the shape of the preset {}; give its "
                                      "config.json if it differs",
                                      name, part)};
      const std::size_t cut = part.rfind('-');
      if (cut == std::string::npos) break;
      part.erase(cut);
    }
  }
  return std::nullopt;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "1_6b" of "stablelm-2-1_6b": between hyphens, an underscore is a decimal point.
bool is_decimal_underscore(const std::string& name, std::size_t start, std::size_t at) {
  return name[at] == '_' && (start == 0 || name[start - 1] == '-' || name[start - 1] == '/') &&
         at + 1 < name.size() && is_digit(name[at + 1]);
}

// 9e9 of "Qwen/Qwen3.5-9B" and 35e9 of "35B-A3B": the largest number that has a unit of its own.
double parameters_in(const std::string& name) {
  double largest = 0;
  for (std::size_t i = name.rfind('/') + 1; i < name.size(); ++i) {
    const unsigned char before = i == 0 ? '-' : static_cast<unsigned char>(name[i - 1]);
    if (!is_digit(name[i]) || std::isalnum(before) != 0 || before == '.') continue;
    std::size_t end = i;
    while (end < name.size() &&
           (is_digit(name[end]) || name[end] == '.' || is_decimal_underscore(name, i, end)))
      ++end;
    const char unit = end < name.size()
                          ? static_cast<char>(std::tolower(static_cast<unsigned char>(name[end])))
                          : ' ';
    const bool whole =
        end + 1 >= name.size() || std::isalnum(static_cast<unsigned char>(name[end + 1])) == 0;
    if (end - i > 6 || !whole || (unit != 'b' && unit != 'm')) continue;
    std::string number = name.substr(i, end - i);
    std::replace(number.begin(), number.end(), '_', '.');
    largest = std::max(largest, std::strtod(number.c_str(), nullptr) * (unit == 'b' ? 1e9 : 1e6));
    i = end;
  }
  return largest;
}

// Models of images and videos: a Llama of their size would be another job.
bool is_diffusion_name(const std::string& name) {
  static constexpr auto kBeginnings = std::to_array<std::string_view>(
      {"wan2",        "wan-",       "wan_",          "flux",       "stable-diffusion",
       "sdxl",        "sd3",        "hunyuanvideo",  "hunyuandit", "cogvideo",
       "cogview",     "ltx",        "mochi",         "pixart",     "sana",
       "kandinsky",   "qwen-image", "z-image",       "auraflow",   "open-sora",
       "animatediff", "hidream",    "hunyuan-video", "hunyuan3d",  "hunyuanimage"});
  const std::string stem = lowercase(name.substr(name.rfind('/') + 1));
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return stem.starts_with(beginning); });
}

// "17B-16E": the size is of what a token passes, and the experts are counted apart.
bool counts_experts(const std::string& name) {
  for (std::size_t at = name.find_first_of("0123456789"); at < name.size();
       at = name.find_first_of("0123456789", at)) {
    const bool begins = at > 0 && (name[at - 1] == '-' || name[at - 1] == '_');
    while (at < name.size() && is_digit(name[at])) ++at;
    const bool ends = at + 1 >= name.size() || name[at + 1] == '-' || name[at + 1] == '_';
    if (begins && ends && at < name.size() && (name[at] == 'E' || name[at] == 'e')) return true;
  }
  return false;
}

// ModelScope's cache writes a dot as three underscores: Qwen1___5-7B.
std::string with_dots(std::string name) {
  constexpr std::string_view kDot = "___";
  for (std::size_t at = name.find(kDot); at != std::string::npos; at = name.find(kDot, at))
    name.replace(at, kDot.size(), ".");
  return name;
}

// Only its size is known: a name with an owner is a model's, not a misspelt preset.
std::optional<NamedModel> sized_like(const std::string& name) {
  if (!is_hub_name(name) || name.find('/') == std::string::npos || is_diffusion_name(name))
    return std::nullopt;
  const double published = published_parameters(name);
  const double parameters = published > 0          ? published
                            : counts_experts(name) ? 0
                                                   : parameters_in(name);
  if (parameters < 1e6 || parameters > 5e12) return std::nullopt;
  return NamedModel{
      "parameters", fmt::format("{}", parameters),
      fmt::format("{} is neither a preset nor a local folder nor in the local Hugging Face cache; "
                  "assuming a Llama-shaped model with the {:.3g} B parameters {}. Pass --model "
                  "FOLDER with its config.json for its own shape",
                  name, parameters / 1e9, published > 0 ? "that its card says" : "in its name")};
}

// The model with its name replaced; nothing when the name stays.
std::optional<Node> completed(const Node& model, const fs::path& cache,
                              std::vector<std::string>& assumptions) {
  const Node* preset = model.is_map() ? model.find("preset") : nullptr;
  if (preset == nullptr || !preset->is_string()) return std::nullopt;
  const std::optional<NamedModel> named = find_named_model(preset->as_string(), cache);
  if (!named || (named->form == "preset" && named->value == preset->as_string()))
    return std::nullopt;
  if (!named->assumption.empty()) assumptions.push_back(named->assumption);
  Node changed = model;
  changed.erase("preset");
  changed.set(named->form, node_of(*named));
  return changed;
}

// Adapters of a model whose layers' names are not known go to every linear layer of its stand-in.
void retarget_lora_for_substitute(Node& document, std::vector<std::string>& assumptions) {
  const Node* model = document.find("model");
  const Node* training = document.find("training");
  const Node* lora = training != nullptr && training->is_map() ? training->find("lora") : nullptr;
  const Node* targets = lora != nullptr && lora->is_map() ? lora->find("targets") : nullptr;
  if (model->find("parameters") == nullptr || targets == nullptr || !targets->is_list()) return;
  static constexpr std::array<std::string_view, 8> kLlama{
      "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "all-linear"};
  const auto is_known = [&](const Node& target) {
    return target.is_string() &&
           std::find(kLlama.begin(), kLlama.end(), target.as_string()) != kLlama.end();
  };
  if (std::any_of(targets->items().begin(), targets->items().end(), is_known)) return;
  assumptions.emplace_back(
      "the adapters' targets are no names of Llama's layers: every linear layer of the model that "
      "stands in gets one");
  document.assign("training.lora.targets", Node::string("all-linear"));
}

}  // namespace

fs::path huggingface_cache() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0' ? fs::path(value) : fs::path();
  };
  if (fs::path cache = folder("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const fs::path home = folder("HF_HOME"); !home.empty()) return home / "hub";
  fs::path caches = folder("XDG_CACHE_HOME");
  if (caches.empty()) {
    const fs::path home = folder("HOME");
    if (home.empty()) return {};
    caches = home / ".cache";
  }
  return caches / "huggingface" / "hub";
}

std::optional<NamedModel> find_named_model(const std::string& name, const fs::path& cache) {
  std::error_code ignored;  // a name too long to be a path is no path
  // "gpt2" is the model even where a folder happens to have that name; a path says so by its slash.
  if (is_preset(name)) return NamedModel{"preset", name, ""};
  if (fs::exists(name, ignored))
    return NamedModel{"config", fs::absolute(name).lexically_normal().string(), ""};
  if (const std::optional<fs::path> snapshot = snapshot_of(name, cache)) {
    return NamedModel{
        "config", snapshot->string(),
        fmt::format("{} is read from the local snapshot {}", name, snapshot->filename().string())};
  }
  const std::string written = with_dots(name);
  if (is_preset(written)) return NamedModel{"preset", written, ""};
  if (std::optional<NamedModel> preset = preset_like(written)) return preset;
  if (std::optional<NamedModel> mixture = mixture_in(written)) return mixture;
  return sized_like(written);
}

Node node_of(const NamedModel& named) {
  return named.form == "parameters" ? Node::number(std::strtod(named.value.c_str(), nullptr))
                                    : Node::string(named.value);
}

void complete_model_names(Node& document, const fs::path& cache,
                          std::vector<std::string>& assumptions) {
  const Node* model = document.is_map() ? document.find("model") : nullptr;
  if (model == nullptr || !model->is_map()) return;
  std::vector<std::pair<std::string, Node>> changes;
  if (std::optional<Node> changed = completed(*model, cache, assumptions))
    changes.emplace_back("model", std::move(*changed));
  if (const Node* modules = model->find("modules"); modules != nullptr && modules->is_list()) {
    for (std::size_t i = 0; i < modules->items().size(); ++i) {
      const Node& module = modules->items()[i];
      const Node* part = module.is_map() ? module.find("model") : nullptr;
      if (part == nullptr) continue;
      if (std::optional<Node> changed = completed(*part, cache, assumptions))
        changes.emplace_back(fmt::format("model.modules[{}].model", i), std::move(*changed));
    }
  }
  for (auto& [path, changed] : changes) document.assign(path, std::move(changed));
  retarget_lora_for_substitute(document, assumptions);
}

}  // namespace memfathom
