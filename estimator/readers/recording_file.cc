#include "estimator/readers/recording_file.h"

#include <array>
#include <fstream>
#include <string_view>

#include "kernels/memory/trace/snapshot.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kSchema = "memfathom.trace/";
constexpr std::size_t kBeginning = 256;

// "2.15.0" of "torch 2.15.0+cu132"; empty if the header does not say it.
std::string torch_version(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const TraceReader reader(file, path);
  const Node header = parse_json(reader.header(), path, 1);
  const Node* with = header.find("recorded_with");
  if (with == nullptr || !with->is_string()) return "";
  const std::string& text = with->as_string();
  constexpr std::string_view kName = "torch ";
  if (!text.starts_with(kName)) return "";
  return text.substr(kName.size(), text.find('+') - kName.size());
}

}  // namespace

Node job_of_recording(const std::string& path) {
  Node job = Node::map();
  job.assign("model.trace", Node::string(path));
  std::ifstream file(path, std::ios::binary);
  std::array<char, 2> beginning{};
  file.read(beginning.data(), beginning.size());
  if (is_pickle({beginning.data(), static_cast<std::size_t>(file.gcount())})) return job;
  if (const std::string version = torch_version(path); !version.empty())
    job.assign("target.stack.version", Node::string(version));
  return job;
}

std::optional<ParsedFile> read_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string beginning(kBeginning, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  const bool is_plain_trace =
      beginning.starts_with('{') && beginning.find(kSchema) != std::string::npos;
  if (!is_plain_trace && !beginning.starts_with(kGzip) && !is_pickle(beginning))
    return std::nullopt;
  ParsedFile parsed;
  parsed.file = path;
  parsed.content = job_of_recording(path);
  return parsed;
}

}  // namespace memfathom
