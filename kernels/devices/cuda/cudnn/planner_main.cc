// memfathom-cudnn-planner: answers workspace queries on standard input with cuDNN's own values;
// needs no GPU.
//
// It is a separate process because loading cuDNN takes 0.17 s and half a GiB of address space,
// because a crash in it must not end memfathom, and because LD_LIBRARY_PATH can select another
// version of the library. One line in, one line out:
//   (start) -> cudnn 9.19.0
//   device {the JSON text of cuDNN's device-property descriptor} -> ok
//   conv forward fp16 nhwc ... (the canonical text of a ConvolutionQuery) -> BYTES
//   attention forward fp16 BATCH HEADS KEY_HEADS QUERIES KEYS HEAD_SIZE [causal] -> BYTES
// or, in place of an answer, "refused" and a sentence.
// Arguments: --no-tf32, --deterministic, --libcuda PATH (a libcuda to open first: attention needs
// one, a toolkit's stub will do).
#include <dlfcn.h>
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "kernels/devices/cuda/cudnn/attention_graph.h"
#include "kernels/devices/cuda/cudnn/plan.h"
#include "kernels/workspaces/convolution_text.h"

namespace memfathom::cudnn {
namespace {

AttentionQuery parse_attention(const std::string& line) {
  std::istringstream words(line);
  std::string word, direction, type;
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0;
  words >> word >> direction >> type >> batch >> heads >> key_heads >> queries >> keys >> size;
  const std::optional<DType> dtype = parse_dtype(type);
  if (!words || !dtype || (direction != "forward" && direction != "backward")) {
    throw Error(ErrorKind::kInput, fmt::format("\"{}\" is not an attention query", line));
  }
  std::string causal;
  words >> causal;
  return {.backward = direction == "backward",
          .causal = causal == "causal",
          .dtype = *dtype,
          .q = {batch, heads, queries, size},
          .k = {batch, key_heads, keys, size},
          .strides = {}};
}

Bytes workspace(const std::string& line, const DeviceProperties& device,
                const PlanOptions& options) {
  if (line.starts_with("attention ")) {
    const AttentionQuery query = parse_attention(line);
    return first_engine(Graph(query), device, options).workspace + scratch_of(query).total();
  }
  const ConvolutionQuery query = parse_convolution_query(line);
  const Graph graph(to_cudnn(query));
  return query.benchmark ? largest_workspace(all_engines(graph, device, options))
                         : first_engine(graph, device, options).workspace;
}

std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

int serve(const PlanOptions& options) {
  std::unique_ptr<DeviceProperties> device;
  std::cout << "cudnn " << version() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      if (line.starts_with("device ")) {
        device = std::make_unique<DeviceProperties>(
            DeviceProperties::from_json(std::string_view(line).substr(7)));
        std::cout << "ok\n";
      } else if (device == nullptr) {
        std::cout << "refused no device was described before the first question\n";
      } else {
        std::cout << workspace(line, *device, options).count() << '\n';
      }
    } catch (const Error& error) {
      std::cout << "refused " << on_one_line(error.what()) << '\n';
    }
    // Queries come in batches; one write answers everything read so far.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  return 0;
}

}  // namespace
}  // namespace memfathom::cudnn

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  memfathom::cudnn::PlanOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--no-tf32") {
      options.allow_tf32 = false;
    } else if (argument == "--deterministic") {
      options.deterministic = true;
    } else if (argument == "--libcuda" && i + 1 < argc) {
      if (dlopen(argv[++i], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        std::cerr << dlerror() << '\n';
        return 4;
      }
    } else {
      std::cerr << "memfathom-cudnn-planner: unknown argument " << argument << '\n';
      return 2;
    }
  }
  return memfathom::cudnn::serve(options);
}
