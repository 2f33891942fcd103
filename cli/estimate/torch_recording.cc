#include "cli/estimate/torch_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/estimate/python_program.h"
#include "cli/estimate/relayed_command.h"
#include "core/error.h"
#include "core/gpus.h"
#include "core/json_value.h"
#include "estimator/models/registry.h"

namespace memfathom {
namespace {

constexpr int kNoTorch = 3;  // exit codes of python -m memfathom._with_torch
constexpr int kNotFound = 127;

// The package must be found by a Python that does not have it installed.
void show_package() {
  const std::string folder = python_package_folder();
  if (folder.empty()) return;
  const char* before = std::getenv("PYTHONPATH");
  const bool has_more = before != nullptr && *before != '\0';
  setenv("PYTHONPATH", has_more ? fmt::format("{}:{}", folder, before).c_str() : folder.c_str(), 1);
}

// The job as the recorder reads it: its model is the resolved configuration.
nlohmann::json request_of(const JobInput& input) {
  const NetworkConfig* model = input.job.model.config();
  if (model == nullptr) {
    throw Error(ErrorKind::kInput,
                "--via torch needs a model that a configuration describes: a config.json, its "
                "folder, or a preset that is published as one (memfathom models)");
  }
  nlohmann::json request{{"model", to_json(input.document.at("model"))}};
  for (const char* form : {"preset", "config"}) request["model"].erase(form);
  request["model"]["config"] = to_json(model->config);
  request["folder"] = std::filesystem::path(model->config.file()).parent_path().string();
  for (const char* part : {"training", "parallel"}) {
    if (const Node* found = input.document.find(part)) request[part] = to_json(*found);
  }
  return request;
}

// The job about the trace: the target and the allocator are the old job's.
Node document_of(const JobInput& input, const std::string& trace, const std::string& torch) {
  Node document = Node::map();
  for (const char* key : {"id", "allocator", "target"}) {
    if (const Node* found = input.document.find(key)) document.set(key, *found);
  }
  Node model = Node::map();
  model.set("trace", Node::string(trace));
  document.set("model", std::move(model));
  Node training = Node::map();
  if (const Node* said = input.document.find("training")) {
    for (const char* key : {"mode", "batch_size", "sequence_length"}) {
      if (const Node* found = said->find(key)) training.set(key, *found);
    }
  }
  document.set("training", std::move(training));
  if (!torch.empty()) document.assign("target.stack.version", Node::string(torch));
  return document;
}

std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

}  // namespace

RecordingFile::RecordingFile(std::string kept, std::string_view suffix)
    : path_(std::move(kept)), temporary_(path_.empty()) {
  if (!temporary_) return;
  path_ = (std::filesystem::temp_directory_path() / "memfathom-XXXXXX").string().append(suffix);
  const int file = mkostemps(path_.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
  if (file < 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{}: a temporary file cannot be created; set TMPDIR, or keep the trace "
                            "with -o FILE",
                            path_));
  }
  close(file);
}

RecordingFile::~RecordingFile() {
  if (temporary_) unlink(path_.c_str());
}

nlohmann::json told_in(const RecordingFile& file) {
  std::ifstream stream(file.path());
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  return text.empty() ? nlohmann::json() : parse_json_value(text, file.path());
}

nlohmann::json gpu_facts(const Node& document) {
  nlohmann::json facts = nlohmann::json::object();
  const Node* target = document.find("target");
  if (target == nullptr) return facts;
  if (const Node* name = target->find("gpu")) {
    const Gpu& gpu = gpu_named(name->as_string(), "target.gpu");
    facts["name"] = gpu.product;
    facts["memory"] = gpu.memory().count();
    if (const int capability = gpu.compute_capability(); capability > 0)
      facts["capability"] = {capability / 10, capability % 10};
  }
  return facts;
}

int run_with_torch(const std::string& python, const std::vector<std::string>& words) {
  show_package();
  std::vector<std::string> command{find_python(python), "-m", "memfathom._with_torch"};
  command.insert(command.end(), words.begin(), words.end());
  RelayedCommand running(command, STDERR_FILENO);
  const int code = running.wait();
  if (code == kNoTorch || code == kNotFound) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} has no PyTorch; name the Python that runs your script with "
                            "--python, or activate its environment",
                            command.front()));
  }
  return code;
}

void ViaTorch::check() const {
  if (via == "auto" || via == "torch" || via == "builders") return;
  throw Error(ErrorKind::kUsage,
              fmt::format("--via is {}; it must be torch (record the model's own code), builders "
                          "(never record), or auto (record models that no family is known of)",
                          via));
}

bool ViaTorch::applies_to(const JobInput& input) const {
  if (via != "auto") return via == "torch";
  const NetworkConfig* model = input.job.model.config();
  return model != nullptr && !can_make(model->config) && model->stored.empty();
}

JobInput recorded_job(const JobInput& input, const ViaTorch& options, const RecordingFile& trace) {
  const RecordingFile request("", ".json");
  const RecordingFile told("", ".json");
  std::ofstream(request.path()) << request_of(input).dump();
  const int code = run_with_torch(
      options.python, {options.via == "auto" ? "job-if-there" : "job", request.path(), "-o",
                       trace.path(), "--gpu", gpu_facts(input.document).dump(), "--told",
                       told.path(), "--vary", fmt::format("{}", fmt::join(options.vary, ","))});
  const nlohmann::json said = told_in(told);
  if (!said.is_object() || (code != 0 && !said.contains("refused"))) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("recording with torch ended with exit code {}; see its messages above", code));
  }
  if (said.contains("refused"))
    throw Error(ErrorKind::kInput, said.at("refused").get<std::string>());
  JobInput recorded =
      complete_job(document_of(input, trace.path(), said.value("torch", std::string())));
  recorded.files = input.files;
  const auto say = [&](std::string sentence) {
    recorded.files.assumptions.push_back(std::move(sentence));
  };
  say(fmt::format("recorded from the configuration with {} in {:.1f} s: {}, {} parameters",
                  said.value("versions", ""), said.value("seconds", 0.0), said.value("model", ""),
                  grouped(said.value("parameters", std::int64_t{0}))));
  for (const nlohmann::json& sentence : said.value("notes", nlohmann::json::array()))
    say(sentence.get<std::string>());
  return recorded;
}

JobInput recorded_if_asked(JobInput input, const ViaTorch& options,
                           std::optional<RecordingFile>& trace, Context& context) {
  options.check();
  if (!options.applies_to(input)) return input;
  trace.emplace();
  if (options.via == "torch") return recorded_job(input, options, *trace);
  try {
    return recorded_job(input, options, *trace);
  } catch (const Error& error) {
    // The refusal of the family follows, which names this way; why it is closed comes first.
    if (error.kind() != ErrorKind::kEnvironment)
      context.warn(fmt::format("not recorded with torch either: {}", error.what()));
    return input;
  }
}

}  // namespace memfathom
