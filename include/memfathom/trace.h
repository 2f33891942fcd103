// TraceWriter: writes the allocations of a step for a job with `model: {trace: FILE}`
// (docs/contract.md section 5): the estimator replays them on any GPU.
//
//     #include <memfathom/trace.h>
//     #include <fstream>
//
//     int main() {
//       std::ofstream file("step.jsonl");
//       memfathom::TraceWriter trace(file, "bf16");
//       trace.phase("forward", 1);
//       trace.alloc(1, memfathom::Bytes(1 << 20));
//       trace.free(1);
//     }
//
// Ids are never used again; bytes are as requested, before any rounding. The stream must outlive
// the writer.
#pragma once

#include <memfathom/bytes.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

namespace memfathom {
inline namespace v0 {

class TraceWriter {
 public:
  // `precision`: the type of the step's convolutions.
  explicit TraceWriter(std::ostream& out, const std::string& precision = "fp32") : out_(out) {
    write({{"schema", "memfathom.trace/1"}, {"precision", precision}});
  }

  // load, forward, backward, step; what follows belongs to it.
  void phase(const std::string& name, int iteration) {
    write({{"op", "phase"}, {"name", name}, {"iteration", iteration}});
  }
  // `tag`: a component of an estimate, e.g. "activations"; empty: unknown.
  void alloc(std::int64_t id, Bytes bytes, const std::string& tag = "") {
    nlohmann::ordered_json event{{"op", "alloc"}, {"id", id}, {"bytes", bytes.count()}};
    if (!tag.empty()) event["tag"] = tag;
    write(event);
  }
  void free(std::int64_t id) { write({{"op", "free"}, {"id", id}}); }

 private:
  void write(const nlohmann::ordered_json& event) { out_ << event.dump() << '\n'; }

  std::ostream& out_;
};

}  // namespace v0
}  // namespace memfathom
