#include "cli/job/job_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>

#include "core/bytes.h"
#include "core/error.h"
#include "core/parse_number.h"
#include "estimator/command_line/command_line.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/nvidia_smi.h"

namespace memfathom {
namespace {

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The whole text of a file, or of standard input for "-".
std::string text_of(const std::string& path) {
  constexpr std::size_t kMaxText = 1 << 20;
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; check the path", path));
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text(kMaxText, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

void JobSource::declare(OptionParser& parser) {
  options_.declare(parser);
  parser.positional("JOB", file_);
  parser.list_option("--from,--config", from_);
  parser.option("--batch", batch_);
  parser.flag("--frozen-copy", frozen_copy_);
  parser.option("--nvidia-smi", nvidia_smi_);
}

Arguments JobSource::without_command(const Arguments& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) return arguments;
  command_.assign(dashes + 1, arguments.end());
  return {arguments.begin(), dashes};
}

bool JobSource::given() const {
  return file_ || !from_.empty() || !command_.empty() || options_.any_given();
}

std::optional<std::string> JobSource::batch_file() const {
  if (!batch_ || is_whole_number(*batch_)) return std::nullopt;
  if (file_) {
    throw Error(ErrorKind::kUsage, fmt::format("--batch {} reads its jobs from that file, so {} is "
                                               "not allowed; add it to the file or remove --batch",
                                               *batch_, *file_));
  }
  return batch_;
}

// What --from names, the command after --, then what --model names.
std::vector<ParsedFile> JobSource::other_files() const {
  std::vector<ParsedFile> parsed_files = read_sources(from_);
  if (!command_.empty()) {
    for (ParsedFile& parsed : read_command_line(command_))
      parsed_files.push_back(std::move(parsed));
  }
  if (const std::optional<std::string> model = options_.model_path()) {
    for (ParsedFile& parsed : read_path(*model)) parsed_files.push_back(std::move(parsed));
  }
  return parsed_files;
}

JobInput JobSource::read(const std::string& command) const {
  if (!given()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} needs a job: a YAML or JSON file, --from FILE..., --model NAME, or a "
                    "training command after -- (see memfathom estimate --help)",
                    command));
  }
  std::vector<ParsedFile> parsed_files;
  if (file_) parsed_files = read_source(*file_);
  for (ParsedFile& parsed : other_files()) parsed_files.push_back(std::move(parsed));
  return read_from(std::move(parsed_files));
}

JobInput JobSource::read_from(std::vector<ParsedFile> parsed_files) const {
  JobInput input;
  input.files = merge_files(std::move(parsed_files));
  input.document = options_.document(input.files.document);
  if (batch_ && is_whole_number(*batch_) && options_.sets_batch_size()) {
    throw Error(ErrorKind::kUsage,
                "--batch and --batch-size are the same for one job; give one of them");
  }
  if (batch_ && is_whole_number(*batch_))
    input.document.assign("training.batch_size", Node::integer(std::stoll(*batch_)));
  if (std::string sentence = options_.assumption(); !sentence.empty())
    input.files.assumptions.push_back(std::move(sentence));
  if (options_.divides_model()) {
    input.files.not_modelled.emplace_back(
        "--multi-gpu: the layers are split over several GPUs; counted as if the whole model were "
        "on one");
    input.files.unread.push_back({"command line", "--multi-gpu", "sharding", "", "", ""});
  }
  if (nvidia_smi_) place_on_seen_gpu(input);
  complete(input, {options_.sets_precision(), frozen_copy_});
  return input;
}

void JobSource::place_on_seen_gpu(JobInput& input) const {
  const std::string file = *nvidia_smi_ == "-" ? "standard input" : *nvidia_smi_;
  const std::vector<SeenGpu> gpus = parse_nvidia_smi(text_of(*nvidia_smi_), file);
  Node target = Node::map();
  if (const Node* said = input.document.find("target"); said != nullptr && said->is_map())
    target = *said;
  // --device-id is one of those that were shown, not one of this machine.
  std::optional<int> index;
  if (const Node* device = target.find("device"); device != nullptr && device->is_string()) {
    const std::string& name = device->as_string();
    index = parse_number<int>(name.substr(name.rfind(':') + 1));
    target.erase("device");
  }
  const SeenGpu& gpu = limiting_gpu(gpus, index, file);
  const std::string name = name_of(gpu);
  if (target.find("gpu") == nullptr && !name.empty()) target.set("gpu", Node::string(name));
  const auto in_bytes = [](Bytes size) { return Node::string(fmt::format("{}B", size.count())); };
  if (gpu.total.count() > 0) target.set("memory", in_bytes(gpu.total));
  target.set("used_by_others", in_bytes(gpu.used));
  input.document.set("target", std::move(target));
  input.files.assumptions.push_back(
      fmt::format("{}: GPU {}, {}: {} of {} are used by others{}", file, gpu.index, gpu.product,
                  to_string(gpu.used), to_string(gpu.total),
                  index || gpus.size() == 1
                      ? ""
                      : fmt::format("; of {} GPUs it has the least left, --device-id N takes "
                                    "another",
                                    gpus.size())));
}

std::function<JobInput(Node)> JobSource::reader() const {
  return [this, others = other_files(), edit = options_.editor()](Node line) {
    JobInput input;
    if (others.empty()) {
      input.document = edit(std::move(line));
    } else {
      std::vector<ParsedFile> parsed_files(1);
      parsed_files.front().file = line.where();
      parsed_files.front().content = std::move(line);
      parsed_files.insert(parsed_files.end(), others.begin(), others.end());
      input.files = merge_files(std::move(parsed_files));
      input.document = edit(input.files.document);
    }
    complete(input, {options_.sets_precision(), frozen_copy_});
    return input;
  };
}

}  // namespace memfathom
