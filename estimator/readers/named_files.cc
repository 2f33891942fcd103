#include "estimator/readers/named_files.h"

#include <fmt/format.h>

#include <system_error>

namespace memfathom {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

bool describes_a_model(const fs::path& folder) {
  return is_there(folder / "config.json") || is_there(folder / "model_index.json");
}

fs::path found_from(const fs::path& file, const fs::path& named) {
  if (named.is_absolute()) return is_there(named) ? named : fs::path();
  std::error_code ignored;
  for (const fs::path& start : {fs::absolute(file).parent_path(), fs::current_path(ignored)}) {
    fs::path folder = start;
    for (int steps = 0; steps < 8; ++steps) {
      if (is_there(folder / named)) return folder / named;
      if (!folder.has_parent_path() || folder == folder.parent_path()) break;
      folder = folder.parent_path();
    }
  }
  return {};
}

namespace {

// "zero3_offload.json", but not "stage3_no_offloading.conf" or "zero3_wo_offload.json".
bool says_offload(const std::string& name) {
  const std::size_t at = name.find("offload");
  if (at == std::string::npos) return false;
  std::string_view before = std::string_view(name).substr(0, at);
  while (before.ends_with('_') || before.ends_with('-')) before.remove_suffix(1);
  for (const std::string_view negation : {"no", "non", "not", "wo", "without", "disable"}) {
    if (before.ends_with(negation)) return false;
  }
  return true;
}

}  // namespace

std::optional<ParsedFile> deepspeed_by_name(const ParsedFile& parsed, const std::string& named) {
  const std::string name = fs::path(named).filename().string();
  for (const std::string_view mark : {"zero_stage", "zero", "_z", "stage"}) {
    const std::size_t at = name.find(mark);
    if (at == std::string::npos || at + mark.size() >= name.size()) continue;
    const char stage = name[at + mark.size()];
    if (stage < '0' || stage > '3') continue;
    ParsedFile guessed;
    guessed.file = parsed.file;
    guessed.format = FileFormat::kDeepSpeed;
    guessed.content = Node::map();
    guessed.section = "deepspeed";
    guessed.set("parallel.zero_stage", Node::integer(stage - '0'));
    const bool offloads = says_offload(name);
    if (offloads) guessed.set("parallel.offload.optimizer", Node::string("cpu"));
    if (offloads && stage == '3') guessed.set("parallel.offload.parameters", Node::string("cpu"));
    guessed.assumptions.push_back(
        fmt::format("{} names {}, which is not here: ZeRO stage {}{} is taken from its name; give "
                    "the file with --from for its buckets",
                    parsed.file, named, stage, offloads ? " with offloading" : ""));
    return guessed;
  }
  return std::nullopt;
}

}  // namespace memfathom
