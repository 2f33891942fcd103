#include "estimator/readers/frozen_modules.h"

#include <fmt/format.h>

#include "core/error.h"

namespace memfathom {

std::optional<std::size_t> module_named(const Node& document, std::string_view name) {
  const Node* modules = value_at(document, "model.modules");
  if (modules == nullptr || !modules->is_list()) return std::nullopt;
  for (std::size_t i = 0; i < modules->items().size(); ++i) {
    const Node* own = value_at(modules->items()[i], "name");
    if (own != nullptr && own->is_string() && own->as_string() == name) return i;
  }
  return std::nullopt;
}

namespace {

[[noreturn]] void refuse_other_module(const Node& entry, const Node& modules) {
  std::string names;
  for (const Node& module : modules.items())
    names += (names.empty() ? "" : ", ") + text_at(module, "name", "one without a name");
  throw Error(ErrorKind::kInput,
              fmt::format("{}: \"{}\" freezes a module that the job does not have; its modules are "
                          "{}; give one of them that name, or remove the key",
                          entry.where(), entry.key(), names));
}

}  // namespace

void freeze_named_modules(const ParsedFile& parsed, MergedJob& job) {
  if (parsed.format != FileFormat::kTrainYaml) return;
  const Node* model = value_at(parsed.content, "model");
  if (model == nullptr || !model->is_map()) return;
  for (const Node& entry : model->entries()) {
    if (!entry.key().starts_with(kFreeze)) continue;
    const std::string_view name = entry.key().substr(kFreeze.size());
    const std::optional<std::size_t> index = module_named(job.document, name);
    if (const Node* modules = value_at(job.document, "model.modules");
        !index && modules != nullptr && modules->is_list())
      refuse_other_module(entry, *modules);
    if (!index) {
      job.not_modelled.push_back(
          fmt::format("{}: \"{}\": no module of the job is named {}; set model.modules in a job "
                      "file next to this one (docs/from-your-script.md)",
                      parsed.file, entry.key(), name));
      job.unread.push_back({parsed.file, entry.path(), "model", ""});
      continue;
    }
    const bool frozen = entry.as_bool();
    job.document.assign(fmt::format("model.modules[{}].train", *index),
                        Node::string(frozen ? "frozen" : "full"));
    job.document.assign(fmt::format("model.modules[{}].no_grad", *index), Node::boolean(frozen));
  }
}

}  // namespace memfathom
