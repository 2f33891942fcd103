// explain: what a recorded history held at its peak or failure, how much was fragmentation, and how
// it differs from the replay of a job.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "api/local_session.h"
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "cli/text/history_text.h"
#include "cli/text/holders_text.h"
#include "core/error.h"
#include "core/printable.h"
#include "estimator/session/job_input.h"
#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "kernels/memory/trace/replay.h"
#include "kernels/memory/trace/snapshot.h"

namespace memfathom {
namespace {

struct Explained {
  Snapshot snapshot;
  HolderKey key = HolderKey::kLine;
  PeakHolders holders;
  Bytes allocated_peak;                         // of the replayed history
  Bytes reserved_peak;                          // likewise, with the allocator's defaults
  Bytes reserved_peak_expandable;               // likewise, with expandable segments
  std::optional<HistoryComparison> comparison;  // with the replay of --job
};

// The trace's reader would only name the character at which it stops.
void refuse_other_formats(const std::string& path) {
  constexpr int kGzip = 0x1f;
  std::ifstream file(path, std::ios::binary);
  const int first = file.peek();
  if (first == std::ifstream::traits_type::eof() || first == '{' || first == kGzip) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{} is neither a memory snapshot of PyTorch (pickle) nor a trace of "
                          "memfathom (JSON lines)",
                          path));
}

Snapshot load(const std::string& path) {
  if (const std::optional<std::string> pickle = load_pickle(path))
    return read_whole_snapshot(*pickle, path);
  refuse_other_formats(path);
  Snapshot snapshot;
  snapshot.trace = load_trace(path);
  return snapshot;
}

ReplayResult replayed(const Trace& trace, bool expandable) {
  ArithmeticSegments segments;
  AllocatorOptions options;
  options.expandable_segments = expandable;
  CachingAllocator allocator(segments, options);
  return replay(trace, allocator);
}

Explained explain(const std::string& path, HolderKey key) {
  Explained result;
  result.snapshot = load(path);
  result.key = key;
  const Trace& trace = result.snapshot.trace;
  const std::optional<SnapshotFailure>& failure = result.snapshot.failure;
  result.holders = failure ? holders_after(trace, failure->events, key) : peak_holders(trace, key);
  const ReplayResult plain = replayed(trace, false);
  result.allocated_peak = plain.peak_allocated();
  result.reserved_peak = plain.peak_reserved();
  result.reserved_peak_expandable = replayed(trace, true).peak_reserved();
  return result;
}

// Memory that was reserved and free when the file was written.
Bytes cached(const Snapshot& snapshot) {
  return snapshot.reserved > snapshot.allocated ? snapshot.reserved - snapshot.allocated : Bytes{};
}

std::vector<std::string> advice_of(const Explained& explained) {
  std::vector<std::string> advice;
  const Snapshot& snapshot = explained.snapshot;
  if (explained.reserved_peak > explained.reserved_peak_expandable) {
    advice.push_back(fmt::format(
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would reserve {} instead of {}",
        to_string(explained.reserved_peak_expandable), to_string(explained.reserved_peak)));
  }
  if (const std::optional<SnapshotFailure>& failure = snapshot.failure) {
    const Bytes reachable = failure->device_free + cached(snapshot);
    if (reachable >= failure->requested) {
      advice.push_back(fmt::format(
          "{} were free on the GPU and {} in the allocator's cache, together enough for the {} "
          "requested, but in no single block (the largest had {}): fragmentation",
          to_string(failure->device_free), to_string(cached(snapshot)),
          to_string(failure->requested), to_string(snapshot.largest_free_block)));
    } else {
      advice.push_back(
          fmt::format("{} more would have served this request; the step may need "
                      "more after it (memfathom capture estimates the whole step)",
                      to_string(failure->requested - reachable)));
    }
  }
  if (!explained.holders.holders.empty() && !explained.holders.holders.front().name.empty()) {
    const PeakHolder& largest = explained.holders.holders.front();
    advice.push_back(fmt::format("the most is held by {}: {} in {} tensors",
                                 printable(largest.name), to_string(largest.bytes),
                                 largest.storages));
  }
  return advice;
}

std::string heading_of(const Explained& explained) {
  const Snapshot& snapshot = explained.snapshot;
  std::string text;
  if (const std::optional<SnapshotFailure>& failure = snapshot.failure) {
    text = fmt::format("out of memory{}: {} requested, {} free on the GPU\n",
                       failure->line.empty() ? "" : fmt::format(" at {}", printable(failure->line)),
                       to_string(failure->requested), to_string(failure->device_free));
  }
  if (snapshot.reserved > Bytes{}) {
    text += fmt::format("when written: {} allocated of {} reserved, largest free block {}\n",
                        to_string(snapshot.allocated), to_string(snapshot.reserved),
                        to_string(snapshot.largest_free_block));
  }
  text +=
      fmt::format("history: {} allocated at its peak, {} reserved ({} with expandable segments)\n",
                  to_string(explained.allocated_peak), to_string(explained.reserved_peak),
                  to_string(explained.reserved_peak_expandable));
  return text;
}

nlohmann::ordered_json json_of(const Explained& explained) {
  const Snapshot& snapshot = explained.snapshot;
  nlohmann::ordered_json json{{"schema", "memfathom.explain/1"}, {"failure", nullptr}};
  if (const std::optional<SnapshotFailure>& failure = snapshot.failure) {
    json["failure"] = {{"requested_bytes", failure->requested.count()},
                       {"device_free_bytes", failure->device_free.count()},
                       {"line", failure->line}};
  }
  json["when_written"] = nullptr;
  if (snapshot.reserved > Bytes{}) {
    json["when_written"] = {{"reserved_bytes", snapshot.reserved.count()},
                            {"allocated_bytes", snapshot.allocated.count()},
                            {"largest_free_block_bytes", snapshot.largest_free_block.count()}};
  }
  json["history"] = {
      {"allocated_peak_bytes", explained.allocated_peak.count()},
      {"reserved_peak_bytes", explained.reserved_peak.count()},
      {"reserved_peak_expandable_bytes", explained.reserved_peak_expandable.count()}};
  json["alive"] = holders_json(explained.holders, explained.key);
  json["advice"] = advice_of(explained);
  if (explained.comparison) json["replay"] = history_json(*explained.comparison);
  return json;
}

ExitCode code_of(const Explained& explained) {
  const bool differs = explained.comparison && !explained.comparison->differences.empty();
  return differs ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace

ExitCode run_explain(const Arguments& arguments, Context& context) {
  OptionParser parser("explain");
  std::string file;
  std::string by = "line";
  parser.positional("SNAPSHOT", file);
  std::string job;
  parser.option("--by", by);
  parser.option("--job", job);
  parser.parse(arguments);
  Explained explained = explain(file, parse_holder_key(by));
  if (!job.empty()) {
    const LocalSession session(find_database(context));
    explained.comparison = compare_histories(explained.snapshot.trace,
                                             session.estimator().history(read_job_file(job).job));
  }
  if (context.format == Format::kJson) {
    context.out << json_of(explained).dump(2) << '\n';
    return code_of(explained);
  }
  if (context.format != Format::kCsv) context.out << heading_of(explained);
  context.out << holders_text(explained.holders, explained.key, context);
  if (context.format != Format::kCsv) {
    for (const std::string& sentence : advice_of(explained))
      context.out << "- " << sentence << '\n';
    if (explained.comparison) context.out << history_text(*explained.comparison);
  }
  return code_of(explained);
}

}  // namespace memfathom
