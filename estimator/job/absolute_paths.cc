#include "estimator/job/absolute_paths.h"

#include <fmt/format.h>

#include <filesystem>

namespace memfathom {
namespace {

const Node* entry(const Node* map, std::string_view key) {
  return map != nullptr && map->is_map() ? map->find(key) : nullptr;
}

// `key`: where the model stands in the job.
void make_absolute(const Node* model, const std::string& key, Node& absolute) {
  for (const char* form : {"trace", "config"}) {
    const Node* named = entry(model, form);
    if (named == nullptr || !named->is_string()) continue;
    const std::filesystem::path path = std::filesystem::absolute(
        std::filesystem::path(named->file()).parent_path() / named->as_string());
    absolute.assign(fmt::format("{}.{}", key, form),
                    Node::string(std::filesystem::weakly_canonical(path).string()));
  }
}

}  // namespace

Node with_absolute_paths(const Node& job) {
  Node absolute = job;
  const Node* model = entry(&job, "model");
  make_absolute(model, "model", absolute);
  const Node* modules = entry(model, "modules");
  if (modules == nullptr || !modules->is_list()) return absolute;
  for (std::size_t i = 0; i < modules->items().size(); ++i) {
    make_absolute(entry(&modules->items()[i], "model"), fmt::format("model.modules[{}].model", i),
                  absolute);
  }
  return absolute;
}

}  // namespace memfathom
