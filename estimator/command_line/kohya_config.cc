#include "estimator/command_line/kohya_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/lowercase.h"
#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

// Flags that no other project's files have beside a model or a batch.
constexpr auto kOwnKeys = std::to_array<std::string_view>(
    {"network_module", "network_dim", "save_model_as", "max_data_loader_n_workers",
     "optimizer_type", "cache_latents", "xformers", "max_token_length", "train_data_dir",
     "output_name", "clip_skip", "no_half_vae", "prior_loss_weight", "keep_tokens"});

// The key at the top of the file or in one of its sections.
const Node* find_flag(const Node& tree, std::string_view key) {
  if (const Node* found = tree.find(key); found != nullptr && !found->is_map()) return found;
  for (const Node& section : tree.entries()) {
    const Node* found = section.is_map() ? section.find(key) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::string text_of(const Node& tree, std::string_view key) {
  const Node* found = find_flag(tree, key);
  return found != nullptr && found->is_string() ? lowercase(found->as_string()) : "";
}

std::string_view family_of(const Node& tree) {
  const std::string model = text_of(tree, "pretrained_model_name_or_path");
  const auto names = [&](std::string_view part) { return model.find(part) != std::string::npos; };
  if (text_of(tree, "network_module") == "networks.lora_flux" || names("flux")) return "flux_";
  if (tree.find("sdxl_arguments") != nullptr || names("xl")) return "sdxl_";
  if (names("sd3")) return "sd3_";
  return "";
}

struct Images {
  std::int64_t batch = 0;
  std::int64_t pixels = 0;
  const Node* resolution = nullptr;
};

std::int64_t pixels_of(const Node& resolution) {
  constexpr std::int64_t kMaxSide = 1 << 16;
  if (resolution.is_int()) return resolution.as_int(1, kMaxSide) * resolution.as_int();
  if (!resolution.is_list() || resolution.items().size() != 2) return 1;
  const std::vector<std::int64_t> sides = resolution.as_ints(1, kMaxSide);
  return sides[0] * sides[1];
}

void add_images(const Node& section, Images& images) {
  if (!section.is_map()) return;
  const Node* batch = section.find("batch_size");
  if (batch != nullptr && batch->is_int())
    images.batch = std::max(images.batch, batch->as_int(1, 1 << 20));
  const Node* resolution = section.find("resolution");
  if (resolution == nullptr || pixels_of(*resolution) <= images.pixels) return;
  images.pixels = pixels_of(*resolution);
  images.resolution = resolution;
}

void set_resolution(const Node& resolution, CommandReading& reading) {
  if (!resolution.is_list()) {
    reading.flags.tree.set("resolution", resolution);
    return;
  }
  reading.flags.tree.erase("resolution");
  reading.flags.tree.set("width", Node::integer(resolution.items().front().as_int()));
  reading.flags.tree.set("height", Node::integer(resolution.items().back().as_int()));
}

}  // namespace

bool is_kohya_config(const Node& tree) {
  if (!tree.is_map()) return false;
  const auto has = [&](std::string_view key) { return find_flag(tree, key) != nullptr; };
  const auto own = std::count_if(kOwnKeys.begin(), kOwnKeys.end(), has);
  return own >= 2 && (has("pretrained_model_name_or_path") || has("train_batch_size")) &&
         !has("per_device_train_batch_size");
}

std::vector<std::string> kohya_command(const Node& tree, const std::string& path) {
  const bool adapts = find_flag(tree, "network_module") != nullptr;
  return {"python", fmt::format("{}train{}.py", family_of(tree), adapts ? "_network" : ""),
          "--config_file", path};
}

void lay_kohya_config_under(CommandReading& reading) {
  const std::string named = reading.text("config_file");
  if (named.empty()) return;
  const std::optional<Node> tree = load_named_file(reading, named);
  if (!tree || !is_kohya_config(*tree)) return;
  reading.flags.tree.erase("config_file");
  for (const Node& entry : tree->entries()) {
    if (!entry.is_map()) {
      reading.set_default(entry.key(), entry);
      continue;
    }
    for (const Node& flag : entry.entries()) reading.set_default(flag.key(), flag);
  }
}

void read_kohya_datasets(CommandReading& reading) {
  const std::string named = reading.text("dataset_config");
  if (named.empty()) return;
  reading.flags.tree.erase("dataset_config");
  const std::optional<Node> tree = load_named_file(reading, named);
  if (!tree || !tree->is_map()) {
    reading.leave_open("dataset_config", "batch",
                       fmt::format("{}: {}, which is not here, may say batches and resolutions",
                                   reading.file, named));
    return;
  }
  Images images;
  if (const Node* general = tree->find("general")) add_images(*general, images);
  if (const Node* datasets = tree->find("datasets"); datasets != nullptr && datasets->is_list()) {
    for (const Node& dataset : datasets->items()) add_images(dataset, images);
  }
  if (images.batch > 0) reading.flags.tree.set("train_batch_size", Node::integer(images.batch));
  if (images.resolution != nullptr) set_resolution(*images.resolution, reading);
}

}  // namespace memfathom
