#include "estimator/readers/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "estimator/models/registry.h"
#include "estimator/readers/frozen_modules.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model_index.json";
constexpr const char* kAutoencoder = "vae";
constexpr std::int64_t kTextLength = 512;  // Flux's pipelines, where no config says it

std::optional<Node> config_of(const fs::path& folder, const char* part) {
  const fs::path path = folder / part / "config.json";
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return std::nullopt;
  return load_document(path.string());
}

Node module_of(const char* name, const Node& config, const char* train) {
  Node module = Node::map();
  module.set("name", Node::string(name));
  module.assign("model.config",
                Node::string(fs::absolute(config.file()).lexically_normal().string()));
  module.set("train", Node::string(train));
  return module;
}

Node frozen_module(const char* name, const Node& config) {
  Node module = module_of(name, config, "frozen");
  module.set("no_grad", Node::boolean(true));
  return module;
}

Node text_encoder(const char* name, const Node& config, const Node& denoiser) {
  Node module = frozen_module(name, config);
  // How many tokens of text the denoiser takes; CLIP's encoders have 77 places.
  if (const Node* length = value_at(denoiser, "max_text_seq_length"))
    module.set("sequence_length", *length);
  else if (const Node* places = value_at(config, "max_position_embeddings"))
    module.set("sequence_length", *places);
  else
    module.set("sequence_length", Node::integer(kTextLength));
  return module;
}

void add_autoencoder(const Node& config, ParsedFile& parsed, Node& modules) {
  const ModelFamily* family = find_family(config);
  if (family == nullptr || family->autoencoder == AutoencoderInput::kNone) {
    withhold("vae", "model",
             fmt::format("{}: the VAE, a {}", parsed.file, text_at(config, "_class_name")), parsed);
    return;
  }
  Node module = frozen_module(kAutoencoder, config);
  module.assign("model.part", Node::string("encoder"));
  // diffusers' scripts encode images by the batch, videos one after the other.
  const bool videos = family->autoencoder == AutoencoderInput::kVideos;
  if (videos) module.set("batch_size", Node::integer(1));
  parsed.assumptions.push_back(
      fmt::format("{}: the VAE stays on the GPU: in training it encodes {} in every step, "
                  "otherwise it decodes at the end; if your script precomputes latents, remove the "
                  "module vae from the job (docs/jobs.md)",
                  parsed.file, videos ? "one video at a time" : "the batch"));
  modules.append(std::move(module));
}

// The sample that the denoiser was made for, where nobody says another.
void set_default_sample(const Node& denoiser, ParsedFile& parsed) {
  constexpr std::int64_t kPixelsPerLatent = 8;
  const auto pixels = [&](const char* key) {
    return Node::integer(value_at(denoiser, key)->as_int(1, 1 << 16) * kPixelsPerLatent);
  };
  if (value_at(denoiser, "sample_height") != nullptr &&
      value_at(denoiser, "sample_width") != nullptr) {
    Node size = Node::list();
    size.append(pixels("sample_height"));
    size.append(pixels("sample_width"));
    parsed.set("training.image_size", std::move(size));
  } else if (const Node* side = value_at(denoiser, "sample_size");
             side != nullptr && side->is_int()) {
    parsed.set("training.image_size", pixels("sample_size"));
  }
  if (const Node* frames = value_at(denoiser, "sample_frames"))
    parsed.set("training.num_frames", *frames);
}

}  // namespace

bool names_pipeline(const fs::path& folder) {
  std::error_code unreadable;
  return fs::is_regular_file(folder / kIndex, unreadable);
}

ParsedFile read_pipeline(const fs::path& folder) {
  const Node index = load_document((folder / kIndex).string());
  ParsedFile parsed;
  parsed.file = (folder / kIndex).string();
  parsed.format = FileFormat::kModelConfig;
  parsed.content = index;
  Node denoiser = Node::map();
  Node denoisers = Node::list();
  for (const char* name : {"transformer", "unet"}) {
    const std::optional<Node> config = config_of(folder, name);
    if (!config) continue;
    denoiser = *config;
    denoisers.append(module_of(name, *config, "full"));
  }
  Node modules = Node::list();
  for (const char* name : {"text_encoder", "text_encoder_2", "text_encoder_3"}) {
    if (const std::optional<Node> config = config_of(folder, name))
      modules.append(text_encoder(name, *config, denoiser));
  }
  if (const std::optional<Node> config = config_of(folder, kAutoencoder))
    add_autoencoder(*config, parsed, modules);
  for (const Node& module : denoisers.items()) modules.append(module);
  if (modules.items().empty())
    index.refuse(
        "none of its components (transformer, unet, text_encoder, vae) has a config.json; give the "
        "whole folder");
  parsed.set("model.modules", std::move(modules));
  set_default_sample(denoiser, parsed);
  return parsed;
}

void select_autoencoder_part(const std::vector<ParsedFile>& files, Node& document) {
  const bool any = std::any_of(files.begin(), files.end(), [](const ParsedFile& parsed) {
    return fs::path(parsed.file).filename() == kIndex;
  });
  const std::string mode = text_at(document, "training.mode");
  if (!any || mode.empty() || mode == "train") return;
  const std::optional<std::size_t> place = module_named(document, kAutoencoder);
  if (!place) return;
  Node modules = Node::list();
  const std::vector<Node>& before = value_at(document, "model.modules")->items();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (i != *place) modules.append(before[i]);
  }
  Node last = before[*place];
  last.assign("model.part", Node::string("decoder"));
  last.erase("batch_size");
  modules.append(std::move(last));
  document.assign("model.modules", std::move(modules));
}

}  // namespace memfathom
