// A file that only says which modules are frozen: freeze_vggt, freeze_lang_encoder.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/lowercase.h"
#include "estimator/models/presets.h"
#include "estimator/readers/frozen_modules.h"

namespace memfathom {
namespace {

// The file's `model`, if freeze_NAME keys are all it holds; else null.
const Node* freezing_section(const ParsedFile& parsed) {
  if (parsed.format != FileFormat::kTrainYaml) return nullptr;
  const Node* model = value_at(parsed.content, "model");
  if (model == nullptr || !model->is_map() || model->entries().empty()) return nullptr;
  const auto freezes = [](const Node& entry) { return entry.key().starts_with(kFreeze); };
  const bool all = std::all_of(model->entries().begin(), model->entries().end(), freezes);
  return all ? model : nullptr;
}

// The one preset of that name, or whose name goes on after it: "vggt" is vggt-1b.
std::string preset_beginning(const std::string& name) {
  std::string found;
  for (const Preset& preset : presets()) {
    const std::string known = lowercase(std::string(preset.name));
    if (known == name) return std::string(preset.name);
    if (!known.starts_with(name + "-")) continue;
    if (!found.empty()) return "";
    found = preset.name;
  }
  return found;
}

struct FrozenModule {
  std::string name;
  std::string preset;  // empty: nothing here is called so
  bool is_frozen = false;
};

std::vector<FrozenModule> modules_of(const Node& section) {
  std::vector<FrozenModule> modules;
  for (const Node& entry : section.entries()) {
    const std::string name(entry.key().substr(kFreeze.size()));
    modules.push_back({name, preset_beginning(lowercase(name)), entry.as_bool()});
  }
  return modules;
}

[[noreturn]] void ask_for(const std::string& names, const Node& section, bool is_given) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} {} not described; {}", section.where(), names,
                          names.find(',') == std::string::npos ? "is a module that is"
                                                               : "are modules that are",
                          is_given ? "--model names one of them, so give a job file with all as "
                                     "model.modules next to this one (docs/from-your-script.md)"
                                   : "say which model it is, for example --model llama-2-7b "
                                     "(memfathom models lists them)"));
}

Node module_node(const FrozenModule& module, const Node* given) {
  Node node = Node::map();
  node.set("name", Node::string(module.name));
  if (module.preset.empty()) {
    Node model = *given;
    model.erase("train");
    node.set("model", std::move(model));
  } else {
    node.assign("model.preset", Node::string(module.preset));
  }
  node.set("train", Node::string(module.is_frozen ? "frozen" : "full"));
  node.set("no_grad", Node::boolean(module.is_frozen));
  return node;
}

// The keys are read now.
void forget_unread(const ParsedFile& parsed, const Node& section, MergedJob& job) {
  for (const Node& entry : section.entries()) {
    std::erase_if(job.unread, [&](const UnreadKey& key) {
      return key.file == parsed.file && key.key == entry.path();
    });
    const std::string sentence = fmt::format("{}: \"{}\": no module", parsed.file, entry.key());
    std::erase_if(job.not_modelled,
                  [&](const std::string& one) { return one.starts_with(sentence); });
  }
}

}  // namespace

void build_frozen_modules(Node& document, MergedJob& job) {
  const auto found = std::find_if(job.files.begin(), job.files.end(), [](const ParsedFile& parsed) {
    return freezing_section(parsed) != nullptr;
  });
  if (found == job.files.end() || value_at(document, "model.modules") != nullptr) return;
  const Node section = *freezing_section(*found);
  const std::vector<FrozenModule> modules = modules_of(section);
  std::string unknown, names;
  for (const FrozenModule& module : modules) {
    names += (names.empty() ? "" : ", ") + module.name;
    if (module.preset.empty()) unknown += (unknown.empty() ? "" : ", ") + module.name;
  }
  const bool is_given = has_model(document);
  const bool is_several = unknown.find(',') != std::string::npos;
  if (!unknown.empty() && (!is_given || is_several)) ask_for(unknown, section, is_given);
  if (unknown.empty() && is_given) return;  // a model beside them: freeze_named_modules() says so
  const Node* given = is_given ? document.find("model") : nullptr;
  Node list = Node::list();
  for (const FrozenModule& module : modules) list.append(module_node(module, given));
  Node model = Node::map();
  model.set("modules", std::move(list));
  document.set("model", std::move(model));
  forget_unread(*found, section, job);
  const bool none_learns = std::all_of(modules.begin(), modules.end(),
                                       [](const FrozenModule& one) { return one.is_frozen; });
  if (none_learns) {
    document.assign("training.mode", Node::string("inference"));
    job.assumptions.push_back(fmt::format(
        "{}: all modules that it names are frozen: their forward pass is counted", found->file));
  }
  for (const FrozenModule& module : modules) {
    if (!module.preset.empty())
      job.assumptions.push_back(fmt::format("{}: {} is taken to be the preset {}", found->file,
                                            module.name, module.preset));
  }
  job.not_modelled.push_back(
      fmt::format("{}: modules trained in addition to {} (a fusion module, heads), which the file "
                  "does not describe",
                  found->file, names));
  job.unread.push_back({found->file, "model (other modules)", "model", "", "", ""});
}

}  // namespace memfathom
