#include "estimator/readers/write_back.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "estimator/readers/formats.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/resolve_auto.h"

namespace memfathom {
namespace {

// What stands under `section` in the file that holds it.
const Node* held_section(const ParsedFile& section, const std::vector<ParsedFile>& files) {
  for (const ParsedFile& whole : files) {
    if (whole.file == section.file && whole.section.empty())
      return value_at(whole.content, section.section);
  }
  return nullptr;
}

// A section that only names a file which is not here: its reading comes from the name.
bool is_guessed(const ParsedFile& parsed, const std::vector<ParsedFile>& files) {
  if (parsed.section.empty()) return false;
  const Node* held = held_section(parsed, files);
  return held != nullptr && held->is_string();
}

// The whole files after a change, without the sections that are read out of them.
std::vector<ParsedFile> read_again(const std::vector<ParsedFile>& files) {
  std::vector<ParsedFile> parsed_files;
  for (const ParsedFile& file : files) {
    if (file.section.empty())
      read_with_sections(file.content, file.format, parsed_files);
    else if (is_guessed(file, files))
      parsed_files.push_back(file);
  }
  // The reading of a folder or a command is more than its tree says: it does not change.
  for (ParsedFile& parsed : parsed_files) {
    for (const ParsedFile& file : files) {
      const bool is_same = file.file == parsed.file && file.format == parsed.format;
      if (is_same && (file.format == FileFormat::kModelConfig || file.is_command_line))
        parsed = file;
    }
  }
  return parsed_files;
}

Node resolved(const std::vector<ParsedFile>& files, std::optional<std::int64_t> num_gpus) {
  MergedJob job = merge_files(files);
  if (num_gpus) job.document.assign("parallel.num_gpus", Node::integer(*num_gpus));
  resolve_auto_values(files, job.document, job);
  return job.document;
}

// The job that the files say, in one spelling of each meaning, so that two can be compared.
Node job_of(const std::vector<ParsedFile>& files, const Patch& patch,
            std::optional<std::int64_t> num_gpus) {
  Node document = patched(resolved(files, num_gpus), patch);
  const auto usual = [&](std::string_view key, Node value) {
    if (value_at(document, key) == nullptr) document.assign(key, std::move(value));
  };
  usual("training.batch_size", Node::integer(1));
  usual("training.gradient_accumulation_steps", Node::integer(1));
  if (value_at(document, "training.lora.rank") != nullptr) {
    Node targets = Node::list();
    for (const char* target : {"q_proj", "v_proj"}) targets.append(Node::string(target));
    usual("training.lora.targets", std::move(targets));
  }
  // ZeRO keeps 16-bit weights whether they were asked for so or through autocast.
  const Node* stage = value_at(document, "parallel.zero_stage");
  const Node* precision = value_at(document, "training.precision");
  if (stage != nullptr && stage->as_int() > 0 && precision != nullptr &&
      precision->as_string().starts_with("amp-"))
    document.assign("training.precision", Node::string(precision->as_string().substr(4)));
  return document;
}

std::map<std::string, Node> leaves_of(const Node& document) {
  std::map<std::string, Node> leaves;
  for (const KeyChange& leaf : patch_of(document)) {
    const bool off = (leaf.value.is_bool() && !leaf.value.as_bool()) ||
                     (leaf.value.is_string() && leaf.value.as_string() == "none");
    if (!leaf.value.is_null() && !off) leaves.emplace(leaf.key, leaf.value);
  }
  return leaves;
}

// The keys on which two jobs differ; what is off and what is not said are the same.
std::vector<std::string> differences(const Node& a, const Node& b) {
  const std::map<std::string, Node> first = leaves_of(a), second = leaves_of(b);
  std::vector<std::string> keys;
  for (const auto& [key, value] : first) {
    const auto other = second.find(key);
    if (other == second.end() || !other->second.same_value(value)) keys.push_back(key);
  }
  for (const auto& [key, value] : second) {
    if (first.find(key) == first.end()) keys.push_back(key);
  }
  return keys;
}

// The spelling that the file uses already, else the first that its format knows.
const Field* spelling_of(const ParsedFile& parsed, std::string_view key) {
  const Field* first = nullptr;
  for (const Field& field : fields_of(parsed.format)) {
    if (field.job != key) continue;
    if (value_at(parsed.content, field.file) != nullptr) return &field;
    if (first == nullptr) first = &field;
  }
  return first;
}

bool says(const ParsedFile& parsed, std::string_view key) {
  if (parsed.format == FileFormat::kJob) return value_at(parsed.content, key) != nullptr;
  return std::any_of(parsed.settings.begin(), parsed.settings.end(),
                     [&](const KeyChange& change) { return change.key == key; });
}

bool say(const KeyChange& change, const Node& job, const ParsedFile& parsed, Node& content) {
  if (parsed.is_command_line) return false;
  bool said = false;
  switch (parsed.format) {
    case FileFormat::kJob: content.assign(change.key, change.value); return true;
    case FileFormat::kTrainingArguments: said = write_to_training_arguments(change, content); break;
    case FileFormat::kDeepSpeed: said = write_to_deepspeed(change, job, content); break;
    case FileFormat::kAccelerate: said = write_to_accelerate(change, content); break;
    case FileFormat::kAxolotl: said = write_to_axolotl(change, job, content); break;
    case FileFormat::kLlamaFactory: said = write_to_llama_factory(change, content); break;
    case FileFormat::kTrainYaml: said = write_to_train_yaml(change, job, content); break;
    case FileFormat::kModelConfig:
    case FileFormat::kAdapter:
    case FileFormat::kTorchtitan:
    case FileFormat::kLitgpt:
    case FileFormat::kMsSwift:
    case FileFormat::kVerl:
    case FileFormat::kNemoAutomodel:
    case FileFormat::kNemoRl:
    case FileFormat::kCommandLine:
    case FileFormat::kTorchtune: break;
  }
  const Field* field = spelling_of(parsed, change.key);
  if (said || field == nullptr) return said;
  content.assign(field->file, to_file_value(field->kind, change.value));
  return true;
}

// The files with the change in the given one; a section's goes into the file that holds it.
std::vector<ParsedFile> with_change(const std::vector<ParsedFile>& files, std::size_t where,
                                    const KeyChange& change, const Node& job) {
  if (is_guessed(files[where], files)) return {};
  std::vector<ParsedFile> changed = files;
  Node content = files[where].content;
  if (!say(change, job, files[where], content)) return {};
  changed[where].content = content;
  if (files[where].section.empty()) return changed;
  for (ParsedFile& whole : changed) {
    if (whole.file == files[where].file && whole.section.empty())
      whole.content.assign(files[where].section, content);
  }
  return changed;
}

// The files with the change in the given one, read again; nothing where the format cannot say it or
// its reader refuses what was said.
std::vector<ParsedFile> changed_and_read(const std::vector<ParsedFile>& files, std::size_t where,
                                         const KeyChange& change, const Node& wanted) {
  const std::vector<ParsedFile> changed = with_change(files, where, change, wanted);
  if (changed.empty()) return {};
  try {
    return read_again(changed);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return {};
  }
}

// Makes the change in every file that says the key, else in the last one whose format can say it.
// None may lead away from the wanted job.
void make_change(const KeyChange& change, const Node& wanted, std::optional<std::int64_t> num_gpus,
                 std::vector<ParsedFile>& files) {
  const auto distance = [&](const std::vector<ParsedFile>& some) {
    return differences(job_of(some, {}, num_gpus), wanted).size();
  };
  const auto is_open = [&] {
    const std::vector<std::string> keys = differences(job_of(files, {}, num_gpus), wanted);
    return std::find(keys.begin(), keys.end(), change.key) != keys.end();
  };
  std::size_t nearest = distance(files);
  for (const bool own : {true, false}) {
    bool made = false;
    for (std::size_t i = files.size(); i-- > 0;) {
      if (i >= files.size() || says(files[i], change.key) != own) continue;
      std::vector<ParsedFile> again = changed_and_read(files, i, change, wanted);
      if (again.empty()) continue;
      const std::size_t left = distance(again);
      // A file that another one overrules brings nothing, but must not contradict it.
      if (left > nearest || (left == nearest && !(own && (made || !is_open())))) continue;
      files = std::move(again);
      nearest = left;
      made = true;
      if (!own) return;
    }
    if (made) return;
  }
}

// What changed between two trees, as the second says it; null where a key went.
void collect_changes(const Node& before, const Node& after, Node& changes) {
  for (const Node& entry : after.entries()) {
    const Node* old = before.find(entry.key());
    if (old != nullptr && old->same_value(entry)) continue;
    if (old != nullptr && old->is_map() && entry.is_map()) {
      Node inner = Node::map();
      collect_changes(*old, entry, inner);
      changes.set(entry.key(), std::move(inner));
    } else {
      changes.set(entry.key(), entry);
    }
  }
  for (const Node& entry : before.entries()) {
    if (after.find(entry.key()) == nullptr) changes.set(entry.key(), Node());
  }
}

}  // namespace

WrittenBack write_back(const std::vector<ParsedFile>& files, const Patch& patch,
                       std::optional<std::int64_t> num_gpus) {
  const Node wanted = job_of(files, patch, num_gpus);
  std::vector<ParsedFile> changed = files;
  // What one change makes sayable (a kind of run that offloads) may have been tried before it.
  for (int round = 0; round < 2; ++round) {
    for (const KeyChange& change : patch) make_change(change, wanted, num_gpus, changed);
  }

  WrittenBack result;
  const Node said = resolved(changed, num_gpus);
  const std::vector<std::string> open = differences(job_of(changed, {}, num_gpus), wanted);
  for (const KeyChange& change : patch) {
    // The same as the default, but a flag may say otherwise: it must be said, too.
    if (change.value.is_int() && change.key.find('[') == std::string::npos &&
        value_at(said, change.key) == nullptr) {
      result.left_over.push_back(change);
      continue;
    }
    const auto is_open = [&](const std::string& key) {
      return key == change.key || key.starts_with(change.key + ".") || change.key.starts_with(key);
    };
    if (std::any_of(open.begin(), open.end(), is_open)) result.left_over.push_back(change);
  }
  // With what is left over the job must be the wanted one; if not, nothing was said well.
  if (!differences(job_of(changed, result.left_over, num_gpus), wanted).empty()) {
    result.left_over = patch;
    result.all = files;
    return result;
  }
  result.all = changed;
  for (const ParsedFile& file : files) {
    if (!file.section.empty()) continue;
    for (const ParsedFile& now : changed) {
      if (now.file != file.file || !now.section.empty() || now.content.same_value(file.content))
        continue;
      Node changes = Node::map();
      collect_changes(file.content, now.content, changes);
      result.files.push_back({file.file, file.format, now.content, std::move(changes)});
    }
  }
  return result;
}

}  // namespace memfathom
