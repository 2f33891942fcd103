#include "kernels/memory/trace/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/error.h"
#include "kernels/memory/trace/pickle.h"

namespace memfathom {
namespace {

using Value = Pickle::Value;

constexpr std::size_t kMaxFrames = 256;      // of an event that are looked at
constexpr std::size_t kMaxBlocks = 1 << 24;  // of all segments together

// What the frames of an event say about it.
struct Origin {
  std::string phase;  // empty: as before
  std::string operation;
  std::string line;
};

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, const std::string& name) : pickle_(pickle), name_(name) {}

  Snapshot read() {
    const Value* traces = pickle_.find(&pickle_.root(), "device_traces");
    std::vector<const Value*> history;
    const std::vector<const Value*> devices = pickle_.list(traces);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      std::vector<const Value*> events = pickle_.list(devices[i]);
      if (events.size() <= history.size()) continue;
      history = std::move(events);
      device_ = static_cast<std::int64_t>(i);
    }
    if (history.empty()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the snapshot has no history; call "
                              "torch.cuda.memory._record_memory_history() before the step",
                              name_));
    }
    std::stringstream lines;
    TraceWriter writer(lines, false, R"({"from":"snapshot"})");
    begin_with(blocks_before(history), writer);
    for (const Value* event : history) replay(*event, writer);
    writer.finish();
    add_segments();
    result_.trace = read_trace(lines, name_);
    return std::move(result_);
  }

 private:
  // Sizes as the file has them; negative ones count as 0.
  Bytes bytes(const Value* dict, std::string_view key) const {
    return Bytes{std::max<std::int64_t>(integer(dict, key), 0)};
  }

  void add_segments() {
    for (const Value* segment : pickle_.list(pickle_.find(&pickle_.root(), "segments"))) {
      if (integer(segment, "device") != device_) continue;
      result_.reserved += bytes(segment, "total_size");
      result_.allocated += bytes(segment, "allocated_size");
      for (const Value* block : pickle_.list(pickle_.find(segment, "blocks"), kMaxBlocks)) {
        if (text(block, "state") == "inactive")
          result_.largest_free_block = std::max(result_.largest_free_block, bytes(block, "size"));
      }
    }
  }

  std::int64_t integer(const Value* dict, std::string_view key) const {
    const Value* found = pickle_.find(dict, key);
    return found != nullptr && found->kind == Pickle::Kind::kInteger ? found->integer : 0;
  }
  std::string_view text(const Value* dict, std::string_view key) const {
    const Value* found = pickle_.find(dict, key);
    return found != nullptr && found->kind == Pickle::Kind::kText ? std::string_view(found->text)
                                                                  : std::string_view();
  }

  // Addresses with sizes of what the history frees or leaves alive but does not allocate.
  std::map<std::int64_t, std::int64_t> blocks_before(
      const std::vector<const Value*>& history) const {
    std::map<std::int64_t, std::int64_t> before;
    std::set<std::int64_t> seen;
    for (const Value* event : history) {
      const std::string_view action = text(event, "action");
      if (action != "alloc" && action != "free_completed") continue;
      const std::int64_t address = integer(event, "addr");
      if (seen.insert(address).second && action == "free_completed")
        before[address] = integer(event, "size");
    }
    std::size_t blocks = 0;
    for (const Value* segment : pickle_.list(pickle_.find(&pickle_.root(), "segments"))) {
      if (integer(segment, "device") != device_) continue;
      for (const Value* block : pickle_.list(pickle_.find(segment, "blocks"), kMaxBlocks)) {
        if (++blocks > kMaxBlocks) {
          throw Error(ErrorKind::kInput,
                      fmt::format("{}: the snapshot has more than {} blocks", name_, kMaxBlocks));
        }
        if (pickle_.find(block, "address") == nullptr || text(block, "state") == "inactive")
          continue;
        const std::int64_t address = integer(block, "address");
        if (seen.count(address) == 0)
          before[address] = pickle_.find(block, "requested_size") != nullptr
                                ? integer(block, "requested_size")
                                : integer(block, "size");
      }
    }
    return before;
  }

  void begin_with(const std::map<std::int64_t, std::int64_t>& blocks, TraceWriter& writer) {
    for (const auto& [address, size] : blocks) {
      TraceEvent event;
      event.id = live_[address] = ++ids_;
      event.bytes = Bytes{std::max<std::int64_t>(size, 0)};
      event.phase = "load";
      event.name = "before the history";
      write(event, writer);
    }
  }

  void replay(const Value& entry, TraceWriter& writer) {
    const std::string_view action = text(&entry, "action");
    const std::int64_t address = integer(&entry, "addr");
    TraceEvent event;
    if (action == "alloc") {
      const Origin origin = origin_of(pickle_.list(pickle_.find(&entry, "frames"), kMaxFrames));
      if (!origin.phase.empty()) phase_ = origin.phase;
      event.id = live_[address] = ++ids_;
      event.bytes = Bytes{std::max<std::int64_t>(integer(&entry, "size"), 0)};
      event.pool = pool_of(entry);
      event.name = origin.operation;
      event.line = origin.line;
    } else if (action == "free_completed" && live_.count(address) > 0) {
      event.op = TraceOp::kFree;
      event.id = live_[address];
      live_.erase(address);
    } else {
      if (action == "oom") {
        const Origin origin = origin_of(pickle_.list(pickle_.find(&entry, "frames"), kMaxFrames));
        result_.failure = {bytes(&entry, "size"), bytes(&entry, "device_free"), written_,
                           origin.line};
      }
      return;
    }
    event.phase = phase_;
    write(event, writer);
  }

  // Numbered in the order of their first allocation; (0, 0) names the common pools.
  int pool_of(const Value& entry) {
    const std::vector<const Value*> pair = pickle_.list(pickle_.find(&entry, "pool_id"), 2);
    std::array<std::int64_t, 2> id{};
    for (std::size_t i = 0; i < pair.size() && i < id.size(); ++i) {
      if (pair[i]->kind == Pickle::Kind::kInteger) id[i] = pair[i]->integer;
    }
    if (id == std::array<std::int64_t, 2>{}) return 0;
    return pools_.emplace(id, static_cast<int>(pools_.size()) + 1).first->second;
  }

  void write(const TraceEvent& event, TraceWriter& writer) {
    writer.write(event);
    ++written_;
  }

  Origin origin_of(const std::vector<const Value*>& frames) const {
    Origin origin;
    constexpr std::string_view kOperation = "at::_ops::";
    for (const Value* frame : frames) {
      const std::string_view function = text(frame, "name");
      const std::string_view file = text(frame, "filename");
      if (const std::size_t at = function.find(kOperation);
          at != std::string_view::npos && origin.operation.empty()) {
        const std::string_view rest = function.substr(at + kOperation.size());
        origin.operation = fmt::format("aten.{}", rest.substr(0, rest.find("::")));
      }
      const bool in_torch = file.find("/torch/") != std::string_view::npos;
      if (origin.line.empty() && file.ends_with(".py") && !in_torch)
        origin.line =
            fmt::format("{}:{}", file.substr(file.rfind('/') + 1), integer(frame, "line"));
      if (file.find("torch/optim/") != std::string_view::npos) origin.phase = "step";
      if (origin.phase.empty() && (function == "_engine_run_backward" ||
                                   function.find("autograd::Engine") != std::string_view::npos))
        origin.phase = "backward";
    }
    if (origin.phase.empty() && !origin.line.empty()) origin.phase = "forward";
    return origin;
  }

  const Pickle& pickle_;
  const std::string& name_;
  std::int64_t device_ = 0;
  Snapshot result_;
  std::size_t written_ = 0;  // events of the trace
  std::int64_t ids_ = 0;
  std::string phase_ = "forward";
  std::map<std::int64_t, std::int64_t> live_;  // ids by address
  std::map<std::array<std::int64_t, 2>, int> pools_;
};

}  // namespace

bool is_pickle(std::string_view beginning) {
  return beginning.size() >= 2 && static_cast<unsigned char>(beginning[0]) == 0x80 &&
         beginning[1] >= 2 && beginning[1] <= 5;
}

Snapshot read_whole_snapshot(std::string_view bytes, const std::string& name) {
  const Pickle pickle(bytes, name);
  return SnapshotReader(pickle, name).read();
}

Trace read_snapshot(std::string_view bytes, const std::string& name) {
  return read_whole_snapshot(bytes, name).trace;
}

std::optional<std::string> load_pickle(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::kInput, fmt::format("{}: the trace cannot be opened", path));
  std::string beginning(2, '\0');
  file.read(beginning.data(), 2);
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (!is_pickle(beginning)) return std::nullopt;
  file.clear();
  file.seekg(0);
  constexpr std::uintmax_t kMaxSnapshot = std::uintmax_t{2} << 30;
  const std::uintmax_t size = std::filesystem::file_size(path);
  if (size > kMaxSnapshot) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the snapshot has {} bytes; at most 2 GiB are read. Record fewer "
                            "events (max_entries of _record_memory_history)",
                            path, size));
  }
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace memfathom
