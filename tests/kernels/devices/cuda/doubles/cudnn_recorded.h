// Recorded: a cuDNN descriptor as the double keeps it, and what runs a graph made of such.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace memfathom::doubles {

struct Recorded;
using RecordedPtr = std::shared_ptr<Recorded>;

struct Recorded {
  cudnnBackendDescriptorType_t type{};
  cudnnBackendDescriptor_t original = nullptr;
  cudnnBackendDescriptor_t description = nullptr;  // of the doubled device, for the original
  bool finalized = false;
  std::map<int, std::vector<std::int64_t>> numbers;
  std::map<int, std::vector<void*>> pointers;
  std::map<int, std::vector<RecordedPtr>> parts;
  RecordedPtr origin;  // configurations: the heuristics they came from
  // Of our own planner: a configuration's workspace (negative: it says nothing), an engine's note.
  std::int64_t pretended = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  ~Recorded();  // destroys the originals

  std::int64_t number(int name) const { return numbers.at(name).front(); }
  const Recorded& part(int name) const { return *parts.at(name).front(); }
};

// A workspace as the engine sees it: it may write any of it at any time.
struct EngineWorkspace {
  void* host = nullptr;
  std::size_t bytes = 0;
};

// Computes the operations of a graph, on the host memory behind the pointers of a variant pack. The
// refusal, or an empty text.
std::string run_graph(const std::vector<RecordedPtr>& operations, const Recorded& pack,
                      const EngineWorkspace& workspace);

}  // namespace memfathom::doubles
