// Named model: what "meta-llama/Llama-2-7b-hf" means here: a folder, a local snapshot or a preset.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/document.h"

namespace memfathom {

struct NamedModel {
  std::string form;  // "config" (value is a folder or file), "preset" or "parameters"
  std::string value;
  std::string assumption;  // what was taken for granted; empty when nothing was
};

// The folder where Hugging Face's libraries keep what they downloaded, by their own variables.
std::filesystem::path huggingface_cache();

// A path that exists; a snapshot in `cache`; a preset; a preset after the owner and endings such as
// "-hf" or "-Instruct", which seldom change a shape, are cut off (and that is said); the size in
// the name of an owner's model, and no more is known of it (and that is said).
std::optional<NamedModel> find_named_model(const std::string& name,
                                           const std::filesystem::path& cache);

// The value of the job's model.<form>.
Node node_of(const NamedModel& named);

// Replaces the names of a job's models (model.preset, and those of its modules) by what they mean.
// Names that mean nothing here are left for the model factory to refuse.
void complete_model_names(Node& document, const std::filesystem::path& cache,
                          std::vector<std::string>& assumptions);

}  // namespace memfathom
