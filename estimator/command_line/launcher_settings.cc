#include "estimator/command_line/launcher_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/parse_number.h"
#include "estimator/command_line/flags.h"

namespace memfathom {
namespace {

constexpr std::int64_t kMaxGpus = 1 << 20;
constexpr std::string_view kGpus = "parallel.num_gpus";

// accelerate's flags under the keys of its file.
constexpr auto kAccelerateFlags = std::to_array<Spelling>({
    {"zero_stage", "deepspeed_config.zero_stage"},
    {"offload_optimizer_device", "deepspeed_config.offload_optimizer_device"},
    {"offload_param_device", "deepspeed_config.offload_param_device"},
    {"gradient_accumulation_steps", "deepspeed_config.gradient_accumulation_steps"},
    {"gradient_clipping", "deepspeed_config.gradient_clipping"},
    {"zero3_init_flag", "deepspeed_config.zero3_init_flag"},
    {"zero3_save_16bit_model", "deepspeed_config.zero3_save_16bit_model"},
    {"deepspeed_config_file", "deepspeed_config.deepspeed_config_file"},
    {"deepspeed_multinode_launcher", "deepspeed_config.deepspeed_multinode_launcher"},
    {"deepspeed_hostfile", "deepspeed_config.deepspeed_hostfile"},
    {"dynamo_backend", "dynamo_config.dynamo_backend"},
});

// The number of devices in "0,1,2,3".
std::int64_t count_list(const std::string& list) {
  if (list.empty() || list == "-1") return 0;
  return std::count(list.begin(), list.end(), ',') + 1;
}

// What the launcher's own flags say of the number of processes.
class Processes {
 public:
  explicit Processes(CommandReading& reading)
      : reading_(reading), flags_(read_flags(reading.launch.launcher_arguments, reading.file)) {}

  const Flags& flags() const { return flags_; }

  // A flag of the launcher: its number, or nothing. One that is unknown is named.
  std::optional<std::int64_t> number(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (const Node* value = value_at(flags_.tree, key)) {
        if (value->is_int() && value->as_int() > 0 && value->as_int() <= kMaxGpus)
          return value->as_int();
        name_unknown(key, value->shown());
        return std::nullopt;
      }
      for (const UnresolvedFlag& flag : flags_.unresolved) {
        if (flag.key == key) name_unknown(key, flag.value);
      }
    }
    return std::nullopt;
  }

  // From a variable of the environment.
  std::optional<std::int64_t> variable(std::string_view name) {
    const auto found = reading_.command.environment.find(name);
    if (found == reading_.command.environment.end()) return std::nullopt;
    const std::optional<std::int64_t> count = parse_number<std::int64_t>(found->second.text);
    if (count && *count > 0 && *count <= kMaxGpus) return count;
    if (!found->second.unresolved.empty()) name_unknown(name, found->second.text);
    return std::nullopt;
  }

  std::optional<std::int64_t> visible_devices() const {
    for (const std::string_view name : {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"}) {
      const auto found = reading_.command.environment.find(name);
      if (found == reading_.command.environment.end() || !found->second.unresolved.empty())
        continue;
      if (const std::int64_t count = count_list(found->second.text); count > 0) return count;
    }
    return std::nullopt;
  }

  void name_unknown(std::string_view key, const std::string& value) {
    reading_.parsed.unread.push_back(
        {reading_.file, std::string(key), "sharding", "", value, std::string(kGpus)});
  }

 private:
  CommandReading& reading_;
  Flags flags_;
};

void set_gpus(std::optional<std::int64_t> per_node, std::optional<std::int64_t> nodes,
              ParsedFile& parsed) {
  if (!per_node) return;
  const std::int64_t machines = nodes.value_or(1);
  if (*per_node > kMaxGpus / machines) return;
  parsed.set(kGpus, Node::integer(*per_node * machines));
  if (machines > 1) parsed.set("parallel.gpus_per_node", Node::integer(*per_node));
}

std::string upper_mode(const Node& tree) {
  if (is_true_at(tree, "use_deepspeed") ||
      value_at(tree, "deepspeed_config.zero_stage") != nullptr ||
      value_at(tree, "deepspeed_config.deepspeed_config_file") != nullptr)
    return "DEEPSPEED";
  return is_true_at(tree, "use_fsdp") ? "FSDP" : "MULTI_GPU";
}

// accelerate's configuration: its file, if the command names one, and the flags over it.
void read_accelerate_settings(Processes& processes, CommandReading& reading,
                              std::vector<ParsedFile>& files) {
  const Node& flags = processes.flags().tree;
  Node tree = parse_yaml("{}", reading.file, 0);
  bool has_file = false;
  const std::string config = text_at(flags, "config_file");
  if (!config.empty()) {
    if (std::optional<Node> loaded = load_named_file(reading, config); loaded && loaded->is_map()) {
      tree = std::move(*loaded);
      has_file = true;
    } else {
      add_deepspeed_file(config, "config_file", reading);
    }
  }
  for (const UnresolvedFlag& flag : processes.flags().unresolved) {
    if (flag.key == "config_file")
      reading.parsed.unread.push_back({reading.file, flag.key, "sharding", "", flag.value, ""});
  }
  bool says = has_file;
  for (const Node& entry : flags.entries()) {
    std::string key(entry.key());
    if (key == "config_file" || key == "m" || key == "module") continue;
    for (const Spelling& spelling : kAccelerateFlags) {
      if (key == spelling.flag) key = spelling.key;
    }
    if (key.starts_with("fsdp_")) key.insert(0, "fsdp_config.");
    tree.assign(key, entry);
    says = true;
  }
  if (const std::optional<std::int64_t> count = processes.number({"num_processes"}))
    tree.set("num_processes", Node::integer(*count));
  if (is_true_at(flags, "multi_gpu") && value_at(tree, "num_processes") == nullptr)
    reading.assume(
        fmt::format("{}: accelerate starts a process on every GPU it finds, and nothing says how "
                    "many: 1 (--num-gpus)",
                    reading.file));
  if (!says) return;
  if (!has_file || upper_mode(tree) != "MULTI_GPU")
    tree.set("distributed_type", Node::string(upper_mode(tree)));
  for (const char* key : {"use_deepspeed", "use_fsdp", "multi_gpu"}) tree.erase(key);
  ParsedFile parsed = read_tree(tree, FileFormat::kAccelerate);
  parsed.file = has_file ? config : reading.file;
  parsed.is_command_line = true;
  for (UnreadKey& unread : parsed.unread) unread.file = parsed.file;
  const std::string named = text_at(tree, "deepspeed_config.deepspeed_config_file");
  files.push_back(std::move(parsed));
  if (!named.empty()) add_deepspeed_file(named, "deepspeed_config_file", reading);
}

// "localhost:0,1@worker-1:0,1": four GPUs.
std::optional<std::int64_t> count_included(const std::string& include) {
  std::int64_t count = 0;
  std::size_t at = 0;
  while (at < include.size()) {
    const std::size_t end = std::min(include.find('@', at), include.size());
    const std::string host = include.substr(at, end - at);
    const std::size_t colon = host.find(':');
    if (colon == std::string::npos) return std::nullopt;
    count += count_list(host.substr(colon + 1));
    at = end + 1;
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

void read_deepspeed_launcher(Processes& processes, CommandReading& reading, ParsedFile& parsed) {
  std::optional<std::int64_t> gpus = processes.number({"num_gpus", "num_accelerators"});
  const std::string include = text_at(processes.flags().tree, "include");
  if (!gpus && !include.empty()) gpus = count_included(include);
  if (!gpus) gpus = processes.visible_devices();
  set_gpus(gpus, processes.number({"num_nodes"}), parsed);
  if (!gpus)
    reading.assume(
        fmt::format("{}: deepspeed starts a process on every GPU it finds, and the "
                    "command does not say how many: 1 (--num-gpus)",
                    reading.file));
}

// Programs that start one process for each GPU that they see.
bool starts_processes(const Launch& launch) {
  return launch.launcher.empty() &&
         (launch.program == "llamafactory-cli" || launch.program == "axolotl");
}

// ms-swift divides the layers of one process among the GPUs that it sees.
bool is_one_process(const Launch& launch) {
  return launch.launcher.empty() && launch.program == "swift";
}

void read_allocator(const CommandReading& reading, ParsedFile& parsed) {
  for (const std::string_view name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const auto found = reading.command.environment.find(name);
    if (found == reading.command.environment.end() || !found->second.unresolved.empty()) continue;
    parsed.set("allocator.options", Node::string(found->second.text));
    return;
  }
}

}  // namespace

std::vector<ParsedFile> read_launcher_settings(CommandReading& reading) {
  std::vector<ParsedFile> files;
  ParsedFile parsed;
  parsed.file = reading.file;
  parsed.format = FileFormat::kCommandLine;
  parsed.content = Node::map();
  parsed.is_command_line = true;
  Processes processes(reading);
  const std::string& launcher = reading.launch.launcher;
  const std::size_t others = reading.others.size();
  if (launcher == "accelerate") {
    read_accelerate_settings(processes, reading, files);
  } else if (launcher == "torchrun") {
    set_gpus(processes.number({"nproc_per_node", "nproc"}), processes.number({"nnodes", "nnode"}),
             parsed);
  } else if (launcher == "deepspeed") {
    read_deepspeed_launcher(processes, reading, parsed);
  } else if (reading.launch.program == "tune") {
    set_gpus(processes.number({"nproc_per_node"}), processes.number({"nnodes"}), parsed);
  } else if (const std::optional<std::int64_t> count = processes.variable("NPROC_PER_NODE")) {
    set_gpus(count, processes.variable("NNODES"), parsed);
  } else if (starts_processes(reading.launch)) {
    set_gpus(processes.visible_devices(), std::nullopt, parsed);
  } else if (const std::optional<std::int64_t> seen = processes.visible_devices();
             seen && *seen > 1 && (launcher == "python" || is_one_process(reading.launch))) {
    reading.leave_open(
        "CUDA_VISIBLE_DEVICES", "sharding",
        fmt::format("{}: {} visible GPUs in one process (DataParallel or a model divided by "
                    "device_map); one GPU with the whole model is counted",
                    reading.file, *seen));
  }
  for (const UnresolvedFlag& flag : processes.flags().unresolved) {
    if (flag.key.empty()) processes.name_unknown(flag.value, flag.value);
  }
  read_allocator(reading, parsed);
  // Files that the launcher named were added to `others`; they belong with its settings.
  for (std::size_t i = others; i < reading.others.size(); ++i)
    files.push_back(std::move(reading.others[i]));
  reading.others.resize(others);
  if (!parsed.settings.empty()) files.push_back(std::move(parsed));
  return files;
}

}  // namespace memfathom
