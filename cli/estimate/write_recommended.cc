#include "cli/estimate/write_recommended.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "core/document_path.h"
#include "core/error.h"
#include "core/yaml_text.h"
#include "estimator/job/patch.h"
#include "estimator/readers/write_back.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

struct OutputFile {
  std::string original;  // empty: a job that no file of another tool says
  std::string place;
  Node content;
};

// The output path of a changed file; with several files, NAME.FILE.
std::string place_of(const std::string& name, const std::string& file, bool several) {
  const fs::path original(file);
  if (several) return fmt::format("{}.{}", name, original.filename().string());
  return name == kDefaultRecommendedName ? name + original.extension().string() : name;
}

bool is_json(const OutputFile& file) {
  return (file.original.empty() ? file.place : file.original).ends_with(".json");
}

fs::path folder_of(const fs::path& file) { return fs::absolute(file).parent_path(); }

// A path as a file in the folder of `place` names it.
std::string seen_from(const std::string& place, const fs::path& target) {
  const fs::path relative = fs::absolute(target).lexically_normal().lexically_relative(
      folder_of(place).lexically_normal());
  return relative.empty() ? fs::absolute(target).string() : relative.string();
}

// A file that `by` names, if it is there: next to it, or where the command runs.
std::optional<fs::path> named_file(const std::string& by, const std::string& named) {
  std::error_code ignored;
  for (const fs::path& path : {folder_of(by) / named, fs::path(named)}) {
    if (!named.empty() && fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

// The keys of a job that name files are relative to the job's own file, which is another one now.
void move_model_paths(const std::string& place, Node& model) {
  for (const char* key : {"config", "trace"}) {
    const Node* path = model.find(key);
    if (path == nullptr || !path->is_string()) continue;
    const std::string from = path->file().empty() ? "here" : path->file();
    if (const std::optional<fs::path> file = named_file(from, path->as_string()))
      model.set(key, Node::string(seen_from(place, *file)));
  }
  const Node* modules = model.find("modules");
  if (modules == nullptr || !modules->is_list()) return;
  Node moved = Node::list();
  for (Node module : modules->items()) {
    if (const Node* inner = module.find("model"); inner != nullptr && inner->is_map()) {
      Node copy = *inner;
      move_model_paths(place, copy);
      module.set("model", std::move(copy));
    }
    moved.append(std::move(module));
  }
  model.set("modules", std::move(moved));
}

// Files that name each other by path name the new ones, from where they stand now. A file that
// names a changed one changes with it.
void update_names(const std::vector<ParsedFile>& all, const std::string& name,
                  std::vector<OutputFile>& files) {
  const auto output_of = [&](const fs::path& original) {
    return std::find_if(files.begin(), files.end(), [&](const OutputFile& file) {
      std::error_code ignored;
      return fs::equivalent(file.original, original, ignored);
    });
  };
  // The files that name a changed one come along first: how many there are decides their names.
  for (const ParsedFile& parsed : all) {
    if (!parsed.section.empty() || output_of(parsed.file) != files.end()) continue;
    for (const std::string_view key : deepspeed_keys(parsed.format)) {
      const std::optional<fs::path> named = named_file(parsed.file, text_at(parsed.content, key));
      if (named && output_of(*named) != files.end()) {
        files.push_back({parsed.file, "", parsed.content});
        break;
      }
    }
  }
  for (OutputFile& file : files) file.place = place_of(name, file.original, files.size() > 1);
  for (OutputFile& file : files) {
    const auto parsed = std::find_if(all.begin(), all.end(), [&](const ParsedFile& one) {
      return one.file == file.original && one.section.empty();
    });
    if (parsed == all.end()) continue;
    for (const std::string_view key : deepspeed_keys(parsed->format)) {
      const std::optional<fs::path> named = named_file(file.original, text_at(file.content, key));
      if (!named) continue;
      const auto changed = output_of(*named);
      const std::string target =
          seen_from(file.place, changed == files.end() ? *named : fs::path(changed->place));
      file.content.assign(key, Node::string(target));
    }
  }
}

// Where a flag says what the patch changes, the files alone do not decide.
Patch overruled(const Patch& patch, const Node& document) {
  Patch keys;
  for (const KeyChange& change : patch) {
    const Node* now = value_at(document, change.key);
    const bool in_list = change.key.find('[') != std::string::npos;
    if (!in_list && (now == nullptr || !now->same_value(change.value))) keys.push_back(change);
  }
  return keys;
}

struct WrittenPlan {
  std::vector<OutputFile> files;
  Patch by_hand;
  Patch flags;  // that say something else than the files now do
  Node document;
};

WrittenPlan in_own_files(const JobInput& input, const JobSource& source, const Patch& patch,
                         const std::string& name) {
  const WrittenBack written = write_back(input.files.files, patch, input.job.parallel.num_gpus);
  WrittenPlan plan;
  for (const ChangedFile& changed : written.files)
    plan.files.push_back({changed.file, "", changed.content});
  update_names(written.all, name, plan.files);
  plan.by_hand = written.left_over;
  JobInput again = source.read_from(written.all);
  plan.document = patched(std::move(again.document), written.left_over);
  for (KeyChange& change : overruled(patch, plan.document)) {
    // ZeRO's 16-bit weights and autocast are one setting in a DeepSpeed file.
    if (change.key == "training.precision") continue;
    plan.document = patched(std::move(plan.document), {change});
    plan.flags.push_back(std::move(change));
  }
  return plan;
}

WrittenPlan as_job(const JobInput& input, const Patch& patch, const std::string& name) {
  WrittenPlan plan;
  const std::string place = place_of(name, "job.yaml", false);
  Node document = patched(input.document, patch);
  if (const Node* model = document.find("model"); model != nullptr && model->is_map()) {
    Node moved = *model;
    move_model_paths(place, moved);
    document.set("model", std::move(moved));
  }
  plan.files.push_back({"", place, std::move(document)});
  // As the reader of the written file will see it.
  const std::string text = to_yaml(plan.files.front().content);
  plan.document = complete_job(parse_yaml(text, place)).document;
  return plan;
}

// A plan that the files can say whole, where there is one; else the balanced one with what is to be
// set by hand.
Configuration choose(const JobInput& input, const Configuration& balanced,
                     const RecommendOptions& options, const EstimateFunction& answer,
                     const Context& context) {
  const auto by_hand = [&](const Patch& patch) {
    return write_back(input.files.files, patch, input.job.parallel.num_gpus).left_over;
  };
  if (!input.has_foreign_files() || by_hand(patch_of(balanced.patch)).empty()) return balanced;
  RecommendOptions sayable = options;
  sayable.usable = [&](const SingleChange& change) { return by_hand(change.patch).empty(); };
  const std::optional<Configuration> found =
      cheapest_configuration(input.document, answer, sayable, input.job);
  // A plan with a setting by hand is better than one that trains something else.
  if (!found || (balanced.trains_the_same && !found->trains_the_same) ||
      !by_hand(patch_of(found->patch)).empty())
    return balanced;
  std::string words;
  for (const std::string& change : found->changes) words += (words.empty() ? "" : "; ") + change;
  context.note(
      "the files cannot say all of the balanced configuration; the cheapest changes that "
      "they can say: " +
      words);
  return *found;
}

void write_files(const WrittenPlan& plan, const CheckedFit& checked, const Context& context) {
  for (const OutputFile& file : plan.files) {
    write_file_atomically(file.place,
                          is_json(file) ? to_indented_json(file.content) : to_yaml(file.content));
    context.note(
        file.original.empty()
            ? fmt::format("the job with the balanced configuration was written to {}", file.place)
            : fmt::format("{} with the balanced configuration was written to {}", file.original,
                          file.place));
  }
  for (const KeyChange& change : plan.by_hand)
    context.note("set manually: " + manual_setting(change));
  for (const KeyChange& change : plan.flags)
    context.note(
        fmt::format("a flag sets {}: leave it out, or give {}", change.key, change.value.shown()));
  context.note(fmt::format("estimated again{}: {} of {}",
                           plan.by_hand.empty() && plan.flags.empty() ? " from what was written"
                                                                      : ", with these settings",
                           to_string(checked.device_peak), to_string(checked.available)));
}

}  // namespace

void write_recommended(const JobInput& input, const JobSource& source,
                       const Recommendation& recommendation, const RecommendOptions& options,
                       const EstimateFunction& answer, const std::string& name,
                       const Context& context) {
  const Configuration* balanced = configuration_named(recommendation, "balanced");
  if (!recommendation.available) {
    context.warn("--auto wrote nothing: the job names no GPU to fit on; add --gpu rtx-4090");
    return;
  }
  if (balanced == nullptr) {
    context.warn("--auto wrote nothing: no combination of changes makes the job fit");
    return;
  }
  if (input.is_open()) {
    context.warn(
        "--auto wrote nothing: settings that may affect memory were not read, so no configuration "
        "is known to fit; set them with --set, in the job's own keys");
    return;
  }
  if (balanced->changes.empty() && input.has_foreign_files()) {
    context.note("--auto wrote nothing: the job fits as its files say it");
    return;
  }
  const Configuration chosen = choose(input, *balanced, options, answer, context);
  const Patch patch = patch_of(chosen.patch);
  const WrittenPlan plan = input.has_foreign_files() ? in_own_files(input, source, patch, name)
                                                     : as_job(input, patch, name);
  const std::optional<CheckedFit> checked = check_fit(plan.document, answer, options);
  if (!checked || !checked->fits) {
    context.warn(fmt::format(
        "--auto wrote nothing: what would be written takes {} of {} when it is read again",
        checked ? to_string(checked->device_peak) : "an unknown part",
        to_string(*recommendation.available)));
    return;
  }
  if (plan.files.empty())
    context.warn("--auto wrote nothing: none of the files can say these changes");
  write_files(plan, *checked, context);
}

}  // namespace memfathom
