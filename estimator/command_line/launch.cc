#include "estimator/command_line/launch.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace memfathom {
namespace {

using Words = std::span<const ShellWord>;

template <std::size_t n>
bool is_among(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Programs that only start another one.
constexpr auto kPrefixes = std::to_array<std::string_view>(
    {"nohup",  "env",       "sudo",        "time",     "srun",  "mpirun",  "mpiexec", "nice",
     "uv",     "poetry",    "conda",       "stdbuf",   "ray",   "timeout", "taskset", "numactl",
     "docker", "apptainer", "singularity", "coverage", "mamba", "pixi",    "command"});

constexpr auto kTools = std::to_array<std::string_view>(
    {"swift", "megatron", "trl", "llamafactory-cli", "lmf", "axolotl", "litgpt", "tune", "xtuner"});

constexpr auto kActions = std::to_array<std::string_view>({"sft",
                                                           "pt",
                                                           "rlhf",
                                                           "dpo",
                                                           "kto",
                                                           "grpo",
                                                           "rloo",
                                                           "reward",
                                                           "orpo",
                                                           "cpo",
                                                           "gkd",
                                                           "online_dpo",
                                                           "train",
                                                           "run",
                                                           "pretrain",
                                                           "finetune",
                                                           "finetune_lora",
                                                           "finetune_full",
                                                           "finetune_adapter",
                                                           "finetune_adapter_v2"});

// Options of the launchers that take no value; every other one takes one.
constexpr auto kSwitches = std::to_array<std::string_view>({"--standalone",
                                                            "--no_python",
                                                            "--no-python",
                                                            "--use_env",
                                                            "--use-env",
                                                            "-m",
                                                            "--module",
                                                            "--run-path",
                                                            "--multi_gpu",
                                                            "--multi-gpu",
                                                            "--cpu",
                                                            "--tpu",
                                                            "--use_deepspeed",
                                                            "--use-deepspeed",
                                                            "--use_fsdp",
                                                            "--use-fsdp",
                                                            "--quiet",
                                                            "-q",
                                                            "--debug",
                                                            "--use_xpu",
                                                            "--use_megatron_lm",
                                                            "--use_parallelism_config",
                                                            "--no_local_rank",
                                                            "--no_ssh_check",
                                                            "--force_multi",
                                                            "--bind_cores_to_core",
                                                            "--no_ssh",
                                                            "--dynamo_use_dynamic",
                                                            "--dynamo_use_fullgraph",
                                                            "--same_network",
                                                            "-u",
                                                            "-O",
                                                            "-B",
                                                            "-s"});

bool is_python(std::string_view word) {
  const std::string_view name = base_name(word);
  return name.starts_with("python") || name == "$PYTHON" || name == "ipython";
}

bool is_launcher(std::string_view word) {
  const std::string_view name = base_name(word);
  return is_python(word) || name == "torchrun" || name == "accelerate" || name == "deepspeed" ||
         name == "colossalai" || is_among(name, kTools);
}

// The first word from `at` on that is no option and no option's value; the options go to `options`.
// Sets `is_module` where -m stands among them.
std::size_t skip_options(Words words, std::size_t at, std::vector<ShellWord>& options,
                         bool& is_module) {
  for (; at < words.size(); ++at) {
    const std::string& word = words[at].text;
    if (word.size() < 2 || word.front() != '-') return at;
    options.push_back(words[at]);
    if (word == "-m" || word == "--module") is_module = true;
    const bool has_value = word.find('=') != std::string::npos || is_among(word, kSwitches);
    if (has_value) continue;
    if (at + 1 < words.size() && !words[at + 1].text.starts_with("--") &&
        !words[at + 1].text.ends_with(".py"))
      options.push_back(words[++at]);
  }
  return at;
}

// By the name of the script; conversions and evaluations have arguments like those of training.
bool names_training(std::string_view program) {
  static constexpr auto kOthers = std::to_array<std::string_view>(
      {"convert",     "infer",  "generate", "download", "merge",     "export",   "preprocess",
       "serve",       "server", "tokenize", "evaluate", "benchmark", "setup.py", "pip",
       "pytest",      "test_",  "eval",     "quantize", "upload",    "prepare",  "build_",
       "http.server", "sample", "demo",     "chat",     "data_"});
  static constexpr auto kTraining = std::to_array<std::string_view>(
      {"train", "tune", "sft", "dpo", "grpo", "ppo", "rlhf", "pretrain", "run_", "main", "orpo",
       "kto", "reward", "distill", "lora", "dreambooth", "example", "bert", "gpt"});
  const auto contains = [&](std::string_view part) {
    return program.find(part) != std::string_view::npos;
  };
  const std::string_view name = base_name(program);
  if (std::any_of(kOthers.begin(), kOthers.end(), contains) &&
      name.find("train") == std::string_view::npos)
    return false;
  return std::any_of(kTraining.begin(), kTraining.end(), contains);
}

class LaunchReader {
 public:
  explicit LaunchReader(Words words) : words_(words) {}

  std::optional<Launch> run() {
    std::size_t at = 0;
    if (words_.empty()) return std::nullopt;
    if (is_among(base_name(words_.front().text), kPrefixes)) {
      while (at < words_.size() && !is_launcher(words_[at].text)) {
        launch_.scheduler_arguments.push_back(words_[at]);
        ++at;
      }
    }
    if (at == words_.size()) return std::nullopt;
    const std::string first(base_name(words_[at].text));
    if (is_among(first, kTools)) return read_tool(first, at + 1);
    if (is_python(first)) return read_python(at + 1);
    if (first == "torchrun" || first == "deepspeed") return read_launcher(first, at + 1);
    const bool launches = at + 1 < words_.size() && words_[at + 1].text == "launch";
    if (first == "accelerate" && launches) return read_launcher(first, at + 2);
    if (first == "colossalai" && launches) return read_launcher("torchrun", at + 2);
    // A script that is executable.
    if (!first.ends_with(".py")) return std::nullopt;
    return finish(words_[at].text, at + 1);
  }

 private:
  std::optional<Launch> finish(const std::string& program, std::size_t at) {
    launch_.program = program;
    launch_.arguments.assign(words_.begin() + static_cast<long>(std::min(at, words_.size())),
                             words_.end());
    launch_.is_training = names_training(program);
    return std::move(launch_);
  }

  std::optional<Launch> read_tool(const std::string& tool, std::size_t at) {
    if (at >= words_.size()) return std::nullopt;
    launch_.action = words_[at].text;
    if (!is_among(launch_.action, kActions)) return std::nullopt;
    if (tool == "tune") {
      bool is_module = false;
      ++at;
      at = skip_options(words_, at, launch_.launcher_arguments, is_module);
      if (at >= words_.size()) return std::nullopt;
      launch_.action = words_[at].text;
    }
    std::optional<Launch> launch = finish(tool == "lmf" ? "llamafactory-cli" : tool, at + 1);
    launch->is_training = true;
    return launch;
  }

  std::optional<Launch> read_python(std::size_t at) {
    launch_.launcher = "python";
    bool is_module = false;
    while (at < words_.size() && words_[at].text.starts_with('-') && !is_module) {
      if (words_[at].text == "-c") return std::nullopt;
      is_module = words_[at].text == "-m";
      ++at;
    }
    if (at >= words_.size()) return std::nullopt;
    const std::string program = words_[at].text;
    if (is_module) {
      if (program == "torch.distributed.launch" || program == "torch.distributed.run" ||
          program == "torch.distributed.elastic")
        return read_launcher("torchrun", at + 1);
      if (program == "accelerate.commands.launch") return read_launcher("accelerate", at + 1);
      if (program.starts_with("deepspeed.launcher")) return read_launcher("deepspeed", at + 1);
      if (program == "axolotl.cli.train") return read_module_tool("axolotl", at + 1);
      if (program == "pip" || program == "venv") return std::nullopt;
    }
    return finish(program, at + 1);
  }

  std::optional<Launch> read_module_tool(const std::string& tool, std::size_t at) {
    std::optional<Launch> launch = finish(tool, at);
    launch->action = "train";
    launch->is_training = true;
    return launch;
  }

  std::optional<Launch> read_launcher(const std::string& name, std::size_t at) {
    launch_.launcher = name;
    bool is_module = false;
    at = skip_options(words_, at, launch_.launcher_arguments, is_module);
    // deepspeed $ARGS train.py: options that only a run knows.
    while (at + 1 < words_.size() && words_[at].text.starts_with('$') &&
           words_[at + 1].text.ends_with(".py")) {
      launch_.launcher_arguments.push_back(words_[at]);
      ++at;
    }
    if (at >= words_.size()) return std::nullopt;
    const std::string program = words_[at].text;
    if (program == "axolotl.cli.train") return read_module_tool("axolotl", at + 1);
    if (is_python(program) && !program.ends_with(".py")) return finish_after_python(at + 1);
    return finish(program, at + 1);
  }

  // torchrun --no-python python train.py
  std::optional<Launch> finish_after_python(std::size_t at) {
    while (at < words_.size() && words_[at].text.starts_with('-')) ++at;
    if (at >= words_.size()) return std::nullopt;
    return finish(words_[at].text, at + 1);
  }

  Words words_;
  Launch launch_;
};

}  // namespace

std::optional<Launch> find_launch(const ShellCommand& command) {
  return LaunchReader(command.words).run();
}

}  // namespace memfathom
