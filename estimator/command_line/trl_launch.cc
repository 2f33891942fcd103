#include "estimator/command_line/trl_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/command_line/reading.h"

namespace memfathom {
namespace {

// The files of TRL's package (trl/accelerate_configs), which are for eight processes.
Node packaged_accelerate_config(const std::string& name) {
  Node tree = Node::map();
  tree.set("mixed_precision", Node::string("bf16"));
  tree.set("num_processes", Node::integer(8));
  if (name.starts_with("zero") && name.size() == 5) {
    tree.set("distributed_type", Node::string("DEEPSPEED"));
    tree.assign("deepspeed_config.zero_stage", Node::integer(name.back() - '0'));
  } else if (name.starts_with("fsdp") && name.size() == 5) {
    tree.set("distributed_type", Node::string("FSDP"));
    tree.assign("fsdp_config.fsdp_version", Node::integer(name.back() - '0'));
    tree.assign("fsdp_config.fsdp_auto_wrap_policy", Node::string("TRANSFORMER_BASED_WRAP"));
  } else {
    tree.set("distributed_type", Node::string(name == "single_gpu" ? "NO" : "MULTI_GPU"));
  }
  return tree;
}

}  // namespace

void read_trl_launch(CommandReading& reading) {
  if (reading.launch.program != "trl") return;
  const std::string named = reading.text("accelerate_config");
  const Node* count = reading.flag("num_processes");
  static constexpr auto kPackaged = std::to_array<std::string_view>(
      {"zero1", "zero2", "zero3", "fsdp1", "fsdp2", "multi_gpu", "single_gpu"});
  const bool is_packaged = std::find(kPackaged.begin(), kPackaged.end(), named) != kPackaged.end();
  std::optional<Node> tree = is_packaged     ? packaged_accelerate_config(named)
                             : named.empty() ? std::nullopt
                                             : load_named_file(reading, named);
  if (tree && tree->is_map()) {
    if (count != nullptr && count->is_int()) tree->set("num_processes", *count);
    reading.others.push_back(read_tree(*tree, FileFormat::kAccelerate));
    reading.others.back().file = named;
    reading.others.back().is_command_line = true;
    reading.flags.tree.erase("num_processes");
  } else if (!named.empty()) {
    reading.leave_open("accelerate_config", "sharding",
                       fmt::format("{}: {}, which is not here", reading.file, named));
  } else if (count != nullptr && count->is_int()) {
    reading.parsed.set("parallel.num_gpus", Node::integer(count->as_int(1, 1 << 16)));
    reading.flags.tree.erase("num_processes");
  }
  reading.flags.tree.erase("accelerate_config");
}

}  // namespace memfathom
