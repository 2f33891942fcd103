#include "profiler/regression/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "profiler/library_use.h"

namespace memfathom {
namespace {

using Group = std::vector<const BenchRow*>;
using Reading = std::function<std::optional<Bytes>(const BenchRow&)>;

Bytes middle(std::vector<Bytes> values) {
  // The lower median: a value that was measured.
  const auto half = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

std::vector<Bytes> read_all(const Group& group, const Reading& reading) {
  std::vector<Bytes> values;
  for (const BenchRow* row : group) {
    if (!row->error.empty()) continue;
    if (const std::optional<Bytes> value = reading(*row)) values.push_back(*value);
  }
  return values;
}

// Empty unless both sides have it.
std::optional<Figure> figure(std::string component, std::string words, const Group& before,
                             const Group& after, const Reading& reading) {
  Figure made{std::move(component),      std::move(words),        {}, {},
              read_all(before, reading), read_all(after, reading)};
  if (made.all_before.empty() || made.all_after.empty()) return std::nullopt;
  made.before = middle(made.all_before);
  made.after = middle(made.all_after);
  return made;
}

std::optional<Bytes> counter(const BenchRow& row, const std::string& name) {
  const auto found = row.counters.find(name);
  return found == row.counters.end() ? std::nullopt : std::optional<Bytes>(found->second);
}

Reading counter_named(std::string name) {
  return [name = std::move(name)](const BenchRow& row) { return counter(row, name); };
}

// A counter as a separate figure.
struct Counter {
  std::string name;
  const char* component;
  std::string words;
};
const std::vector<Counter>& startup_counters() {
  static const std::vector<Counter> kCounters = [] {
    std::vector<Counter> counters{{"context_bytes", "context", "context"}};
    for (const MeasuredLibrary& library : kMeasuredLibraries) {
      counters.push_back({fmt::format("module_{}_bytes", library.name), "framework",
                          fmt::format("modules of {}", library.title)});
    }
    return counters;
  }();
  return kCounters;
}

Bytes startup_of(const BenchRow& row) {
  Bytes sum;
  for (const Counter& startup : startup_counters())
    sum += counter(row, startup.name).value_or(Bytes{});
  return sum;
}

std::optional<Bytes> net_peak(const BenchRow& row) {
  const std::optional<Bytes> peak = counter(row, "device_peak_bytes");
  return peak ? std::optional<Bytes>(*peak - startup_of(row)) : std::nullopt;
}

std::optional<Bytes> slack_of(const BenchRow& row) {
  const std::optional<Bytes> reserved = counter(row, "reserved_peak_bytes");
  const std::optional<Bytes> allocated = counter(row, "allocated_peak_bytes");
  if (!reserved || !allocated) return std::nullopt;
  return *reserved - *allocated;
}

Bytes distance(Bytes from, Bytes to) { return to > from ? to - from : from - to; }

bool differs(Bytes from, Bytes to, int readings, const CompareOptions& options) {
  const Bytes by = distance(from, to);
  return by > readings * options.quantum &&
         static_cast<double>(by.count()) > options.share * static_cast<double>(from.count());
}

// The number of `values` above (or below) `from`.
int moved(Bytes from, const std::vector<Bytes>& values, bool up, int readings,
          const CompareOptions& options) {
  return static_cast<int>(std::count_if(values.begin(), values.end(), [&](Bytes value) {
    return differs(from, value, readings, options) && (value > from) == up;
  }));
}

bool moved_like(const Figure& part, const Figure& total, const CompareOptions& options) {
  return differs(part.before, part.after, part.readings, options) &&
         (part.after > part.before) == (total.after > total.before);
}

std::string library_name(std::string_view component) {
  if (component == "workspace_cudnn") return "cuDNN workspace";
  if (component == "workspace_cublas") return "cuBLAS workspace";
  if (component == "workspace_cufft") return "cuFFT workspace";
  return std::string(component);
}

Reading operation_of(const BenchOperation& wanted) {
  return [&wanted](const BenchRow& row) -> std::optional<Bytes> {
    for (const BenchOperation& operation : row.operations) {
      if (operation.component == wanted.component && operation.operation == wanted.operation)
        return operation.bytes;
    }
    return std::nullopt;
  };
}

}  // namespace

FigureChange change_of(const Figure& figure, const CompareOptions& options) {
  const bool up = figure.after > figure.before;
  const auto count = [](const std::vector<Bytes>& values) {
    return static_cast<int>(values.size());
  };
  FigureChange change;
  change.processes = count(figure.all_after);
  change.agreeing = moved(figure.before, figure.all_after, up, figure.readings, options);
  // Conversely, the old processes must lie as far from the new median.
  const int old_agreeing = moved(figure.after, figure.all_before, !up, figure.readings, options);
  const bool most =
      2 * change.agreeing > change.processes && 2 * old_agreeing > count(figure.all_before);
  if (differs(figure.before, figure.after, figure.readings, options) && most) {
    change.kind = FigureChange::kYes;
    return change;
  }
  const int either =
      std::max(moved(figure.before, figure.all_after, true, figure.readings, options),
               moved(figure.before, figure.all_after, false, figure.readings, options));
  if (4 * either > change.processes) {
    change.kind = FigureChange::kMaybe;
    change.agreeing = either;
  }
  return change;
}

std::vector<Figure> figures_of(const Group& before, const Group& after, bool with_startup) {
  std::vector<Figure> figures;
  const auto add = [&](std::optional<Figure> made) {
    if (made) figures.push_back(std::move(*made));
  };
  if (with_startup) {
    add(figure("unaccounted", "device peak", before, after, counter_named("device_peak_bytes")));
    for (const Counter& c : startup_counters())
      add(figure(c.component, c.words, before, after, counter_named(c.name)));
    for (Figure& made : figures) made.has_startup = true;
  } else if (std::optional<Figure> net =
                 figure("unaccounted", "device peak after the start-up", before, after, net_peak)) {
    net->readings = 2;
    figures.push_back(std::move(*net));
  }
  add(figure("unaccounted", "reserved peak", before, after, counter_named("reserved_peak_bytes")));
  add(figure("unaccounted", "allocated peak", before, after,
             counter_named("allocated_peak_bytes")));
  add(figure("unaccounted", "workspace", before, after, counter_named("workspace_bytes")));
  return figures;
}

Figure cause_of(const Group& before, const Group& after, const Figure& total,
                const CompareOptions& options) {
  const auto by = [](const Figure& f) { return distance(f.before, f.after); };
  std::optional<Figure> startup, request;  // the largest changes of either kind
  const auto consider = [&](std::optional<Figure> made, std::optional<Figure>& most) {
    if (made && moved_like(*made, total, options) && (!most || by(*made) > by(*most)))
      most = std::move(made);
  };
  if (total.has_startup) {
    for (const Counter& c : startup_counters())
      consider(figure(c.component, c.words, before, after, counter_named(c.name)), startup);
  }
  for (const BenchOperation& operation : after.front()->operations) {
    std::optional<Figure> made =
        figure(operation.component,
               fmt::format("{}, {}", library_name(operation.component), operation.operation),
               before, after, operation_of(operation));
    if (made) made->readings = 0;  // a requested size is exact, not rounded to pages
    consider(std::move(made), request);
  }
  // What is a small part of the change explains nothing. But a changed request changes how blocks
  // fit, sometimes by whole segments: the allocator's reserved memory follows from it.
  const bool startup_counts = startup && 4 * by(*startup) >= by(total);
  if (request && startup_counts) {
    const bool startup_first = by(*startup) > by(*request);
    Figure cause = startup_first ? *startup : *request;
    const Figure& other = startup_first ? *request : *startup;
    cause.words +=
        fmt::format(" (and {}, {})", other.words, change_text(other.before, other.after));
    cause.also = other.component;
    return cause;
  }
  if (request) return *request;
  if (startup_counts) return *startup;

  // Slack follows from the allocations: it is the cause only if nothing else changed.
  const std::optional<Figure> slack =
      figure("allocator_slack", "allocator slack", before, after, slack_of);
  if (slack && moved_like(*slack, total, options)) return *slack;
  if (startup) return *startup;
  const std::optional<Figure> tensors = figure("unaccounted", "tensors (allocated peak)", before,
                                               after, counter_named("allocated_peak_bytes"));
  return tensors && moved_like(*tensors, total, options) ? *tensors : total;
}

std::vector<StackChange> stack_changes(const Environment& before, const Environment& after) {
  struct Part {
    const char* key;
    const char* name;
    std::string Environment::*value;
  };
  constexpr std::array<Part, 9> kParts{
      {{"driver", "driver", &Environment::driver},
       {"cuda", "CUDA", &Environment::cuda},
       {"cublas", "cuBLAS", &Environment::cublas},
       {"cudnn", "cuDNN", &Environment::cudnn},
       {"cufft", "cuFFT", &Environment::cufft},
       {"module_loading", "module loading", &Environment::module_loading},
       {"framework", "framework", &Environment::framework},
       {"framework_version", "framework", &Environment::framework_version},
       {"os", "system", &Environment::os}}};
  std::vector<StackChange> changes;
  for (const Part& part : kParts) {
    const std::string& old = before.*part.value;
    const std::string& now = after.*part.value;
    if (old == now) continue;
    changes.push_back(
        {part.key, part.name, old.empty() ? "none" : old, now.empty() ? "none" : now});
  }
  return changes;
}

std::span<const std::string_view> likely_causes(std::string_view component) {
  static constexpr std::array<std::string_view, 1> kOfCudnn{"cudnn"};
  static constexpr std::array<std::string_view, 2> kOfCublas{"cublas", "cuda"};
  static constexpr std::array<std::string_view, 2> kOfCufft{"cufft", "cuda"};
  static constexpr std::array<std::string_view, 3> kOfContext{"driver", "cuda", "module_loading"};
  static constexpr std::array<std::string_view, 2> kOfFramework{"framework_version", "framework"};
  if (component == "workspace_cudnn") return kOfCudnn;
  if (component == "workspace_cublas") return kOfCublas;
  if (component == "workspace_cufft") return kOfCufft;
  if (component == "context") return kOfContext;
  if (component == "allocator_slack") return kOfFramework;
  return {};
}

}  // namespace memfathom
