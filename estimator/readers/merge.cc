#include "estimator/readers/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "estimator/models/presets.h"
#include "estimator/readers/named_model.h"

namespace memfathom {
namespace {

struct Decided {
  Node value;
  std::string file;
  FileFormat format;
};

// The weights' type in config.json is only what they were stored as; a file about training knows
// better.
bool yields(const Decided& earlier, std::string_view key) {
  return key == "training.precision" && earlier.format == FileFormat::kModelConfig;
}

// A Trainer's amp-bf16 beside an engine's bf16 is one and the same wish: the engine then keeps
// 16-bit weights.
bool same_wish(std::string_view key, const Node& a, const Node& b) {
  if (a.same_value(b)) return true;
  if (key != "training.precision" || !a.is_string() || !b.is_string()) return false;
  return a.as_string() == "amp-" + b.as_string() || b.as_string() == "amp-" + a.as_string();
}

std::string shown(const Node& value) {
  return value.is_string() ? value.as_string() : value.shown();
}

void decide(std::map<std::string, Decided>& decided, const KeyChange& change,
            const Reading& reading, MergedJob& job) {
  const auto known = decided.find(change.key);
  if (known != decided.end()) {
    const bool other_is_weights =
        reading.format == FileFormat::kModelConfig && change.key == "training.precision";
    if (other_is_weights) return;
    const bool same = same_wish(change.key, known->second.value, change.value);
    if (same && change.value.is_string() && change.value.as_string().starts_with("amp-")) return;
    if (!same && !yields(known->second, change.key)) {
      job.warnings.push_back(fmt::format("{} is {} in {} and {} in {}; the latter was taken",
                                         change.key, shown(known->second.value), known->second.file,
                                         shown(change.value), reading.file));
    }
  }
  decided.insert_or_assign(change.key, Decided{change.value, reading.file, reading.format});
}

// The hidden size of the job's model; nothing when it has none.
std::optional<std::int64_t> hidden_size(const Node& document) {
  Node config;
  if (const Node* inline_config = value_at(document, "model.config")) {
    if (inline_config->is_map()) {
      config = *inline_config;
    } else {
      std::filesystem::path path = inline_config->as_string();
      std::error_code ignored;
      if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
      config = load_document(path.string());
    }
  } else if (const Node* preset = value_at(document, "model.preset");
             preset != nullptr && preset->is_string()) {
    if (std::optional<Node> known = preset_config(preset->as_string())) config = std::move(*known);
  }
  if (!config.is_map()) return std::nullopt;
  for (const char* key : {"hidden_size", "text_config.hidden_size", "n_embd", "d_model"}) {
    if (const Node* size = value_at(config, key)) return size->as_int(1, 1 << 20);
  }
  if (const Node* sizes = value_at(config, "hidden_sizes");
      sizes != nullptr && sizes->is_list() && !sizes->items().empty()) {
    const std::vector<std::int64_t> all = sizes->as_ints(1, 1 << 20);
    return *std::max_element(all.begin(), all.end());
  }
  return std::nullopt;
}

void resolve_bucket(const Reading& reading, std::string_view file_key, std::string_view job_key,
                    double share, MergedJob& job) {
  if (std::find(reading.autos.begin(), reading.autos.end(), file_key) == reading.autos.end())
    return;
  const std::optional<std::int64_t> hidden = hidden_size(job.document);
  if (!hidden) {
    job.assumptions.push_back(
        fmt::format("{}: \"{}\" is auto, and the model has no hidden size to take it from: "
                    "DeepSpeed's own default",
                    reading.file, file_key));
    return;
  }
  const std::int64_t size = static_cast<std::int64_t>(share * static_cast<double>(*hidden) *
                                                      static_cast<double>(*hidden));
  job.document.assign(job_key, Node::integer(std::max<std::int64_t>(size, 1)));
}

// bf16.enabled: auto follows the Trainer's flag: 16-bit weights where it says mixed precision.
void resolve_precision(const Reading& reading, MergedJob& job) {
  const Node* precision = value_at(job.document, "training.precision");
  if (precision == nullptr || !precision->is_string()) return;
  for (const char* type : {"bf16", "fp16"}) {
    const std::string key = fmt::format("{}.enabled", type);
    const bool left_open =
        std::find(reading.autos.begin(), reading.autos.end(), key) != reading.autos.end();
    if (left_open && precision->as_string() == fmt::format("amp-{}", type)) {
      job.document.assign("training.precision", Node::string(type));
      return;
    }
  }
}

const Field* field_for(FileFormat format, std::string_view key) {
  for (const Field& field : fields_of(format)) {
    if (field.job == key) return &field;
  }
  return nullptr;
}

// The spelling that the file uses already, else the first that its format knows.
const Field* spelling_of(const Reading& reading, std::string_view key) {
  for (const Field& field : fields_of(reading.format)) {
    if (field.job == key && value_at(reading.content, field.file) != nullptr) return &field;
  }
  return field_for(reading.format, key);
}

bool says(const Reading& reading, std::string_view key) {
  if (reading.format == FileFormat::kJob) return value_at(reading.content, key) != nullptr;
  return std::any_of(reading.settings.begin(), reading.settings.end(),
                     [&](const KeyChange& change) { return change.key == key; });
}

bool can_say(const Reading& reading, std::string_view key) {
  return reading.format == FileFormat::kJob || spelling_of(reading, key) != nullptr;
}

// Where no file describes the model, the first that names it decides.
void resolve_base_model(const std::vector<Reading>& files, MergedJob& job) {
  if (value_at(job.document, "model") != nullptr) return;
  for (const Reading& reading : files) {
    if (reading.base_model.empty()) continue;
    const std::optional<NamedModel> named =
        find_named_model(reading.base_model, huggingface_cache());
    if (!named) {
      job.assumptions.push_back(
          fmt::format("{} names the model {}, which is no preset, no folder here and not in the "
                      "local Hugging Face cache; give it with --model",
                      reading.file, reading.base_model));
      continue;
    }
    job.document.assign("model." + named->form, Node::string(named->value));
    if (!named->assumption.empty()) job.assumptions.push_back(named->assumption);
    return;
  }
}

}  // namespace

MergedJob merge_files(std::vector<Reading> files) {
  MergedJob job;
  job.document = Node::map();
  std::map<std::string, Decided> decided;
  const Reading* own = nullptr;  // the first job file is the ground the others are laid on
  for (const Reading& reading : files) {
    if (reading.format == FileFormat::kJob && own == nullptr) own = &reading;
    const Patch settings =
        reading.format == FileFormat::kJob ? patch_of(reading.content) : reading.settings;
    for (const KeyChange& change : settings) decide(decided, change, reading, job);
  }
  if (own != nullptr) job.document = own->content;
  // A map of the job and a key inside it may both be said; the order of the files decides.
  for (const Reading& reading : files) {
    if (&reading == own) continue;
    for (const KeyChange& change :
         reading.format == FileFormat::kJob ? patch_of(reading.content) : reading.settings) {
      const Decided& winner = decided.at(change.key);
      if (winner.file == reading.file) job.document.assign(change.key, winner.value);
    }
  }
  resolve_base_model(files, job);
  for (const Reading& reading : files) {
    job.assumptions.insert(job.assumptions.end(), reading.assumptions.begin(),
                           reading.assumptions.end());
    job.not_modelled.insert(job.not_modelled.end(), reading.not_modelled.begin(),
                            reading.not_modelled.end());
    if (reading.format != FileFormat::kDeepSpeed) continue;
    resolve_bucket(reading, "zero_optimization.reduce_bucket_size",
                   "parallel.zero.reduce_bucket_size", 1, job);
    resolve_bucket(reading, "zero_optimization.stage3_prefetch_bucket_size",
                   "parallel.zero.prefetch_bucket_size", 0.9, job);
    resolve_precision(reading, job);
  }
  job.files = std::move(files);
  return job;
}

MergedJob read_job_files(const std::vector<std::string>& paths) {
  std::vector<Reading> files;
  for (const std::string& path : paths) {
    for (Reading& reading : read_path(path)) files.push_back(std::move(reading));
  }
  return merge_files(std::move(files));
}

std::vector<ChangedFile> write_back(const MergedJob& job, const Patch& patch, Patch& left_over) {
  std::vector<ChangedFile> changed;
  for (const KeyChange& change : patch) {
    auto where = std::find_if(job.files.rbegin(), job.files.rend(), [&](const Reading& file) {
      return says(file, change.key) && can_say(file, change.key);
    });
    if (where == job.files.rend()) {
      where = std::find_if(job.files.rbegin(), job.files.rend(),
                           [&](const Reading& file) { return can_say(file, change.key); });
    }
    if (where == job.files.rend()) {
      left_over.push_back(change);
      continue;
    }
    auto file = std::find_if(changed.begin(), changed.end(),
                             [&](const ChangedFile& known) { return known.file == where->file; });
    if (file == changed.end())
      file = changed.insert(changed.end(), {where->file, where->format, where->content});
    if (where->format == FileFormat::kJob) {
      file->content.assign(change.key, change.value);
    } else {
      const Field& field = *spelling_of(*where, change.key);
      file->content.assign(field.file, to_file_value(field.kind, change.value));
    }
  }
  return changed;
}

}  // namespace memfathom
