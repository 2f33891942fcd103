#include "profiler/protocol.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "kernels/framework/tensor/run_tracer.h"
#include "kernels/memory/allocator/caching_allocator.h"
#include "profiler/driver_activity.h"
#include "profiler/probe_target.h"
#include "profiler/recording_workspaces.h"
#include "profiler/sampler.h"
#include "profiler/trace_file.h"

namespace memfathom {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSamplingInterval{5};

// The smallest jobs that make a library initialize: a matrix product, a convolution, a transform.
// The shapes of the real job may load more.
struct FirstUse {
  Library library;
  bool LibraryUse::*used;
  const char* job;
};
constexpr std::array<FirstUse, kMeasuredLibraries.size()> kFirstUses{{
    {Library::kCublas, &LibraryUse::cublas,
     R"({"model":{"input":{"shape":[16]},"layers":[{"type":"linear","in":16,"out":16}],"loss":"mean"},)"
     R"("training":{"batch_size":4,"optimizer":"none"}})"},
    {Library::kCudnn, &LibraryUse::cudnn,
     R"({"model":{"input":{"shape":[4,8,8]},"layers":[{"type":"conv2d","in":4,"out":4,"kernel":3,)"
     R"("padding":1}],"loss":"mean"},"training":{"batch_size":2,"optimizer":"none"}})"},
    {Library::kCufft, &LibraryUse::cufft,
     R"({"model":{"input":{"shape":[4,16,16]},"layers":[{"type":"spectral_conv","in":4,"out":4,)"
     R"("modes":[4,4]}],"loss":"mean"},"training":{"batch_size":2,"optimizer":"none"}})"},
}};
static_assert(std::ranges::equal(kFirstUses, kMeasuredLibraries, {}, &FirstUse::used,
                                 &MeasuredLibrary::used),
              "every measured library has a job, in the order of the table");

// The stages of a run so far, each with the memory in use.
class Stages {
 public:
  explicit Stages(const MemoryMeter& meter) : meter_(meter) { read("baseline"); }

  void read(std::string stage) {
    readings_.push_back({std::move(stage), meter_.used()});
    if (activity_ != nullptr) activity_->mark();
  }
  // Marks every reading in `activity` too. After the first reading, at the latest.
  void follow(DriverActivity& activity) {
    activity_ = &activity;
    activity_->mark();
  }
  Bytes baseline() const { return readings_.front().device_used; }
  Bytes highest() const {
    return std::max_element(readings_.begin(), readings_.end(),
                            [](const StageReading& a, const StageReading& b) {
                              return a.device_used < b.device_used;
                            })
        ->device_used;
  }
  const std::vector<StageReading>& readings() const { return readings_; }

 private:
  const MemoryMeter& meter_;
  DriverActivity* activity_ = nullptr;
  std::vector<StageReading> readings_;
};

void use_libraries(const ProbeRequest& request, const JobRunner& runner, ProbeTarget& target,
                   Stages& stages) {
  for (std::size_t i = 0; i < kFirstUses.size(); ++i) {
    const FirstUse& first = kFirstUses[i];
    if (!(request.uses.*first.used)) continue;
    target.load_library(first.library);
    {
      CachingAllocator allocator(target.memory());  // frees everything at the end of the scope
      Session session(target.device(), allocator, target.workspaces(),
                      runner.policy(target.environment()));
      runner.run(session, first.job, [](std::string_view) {});
      target.device().synchronize();
    }
    stages.read(kMeasuredLibraries[i].name);
  }
}

// Runs `part`. If the device is out of memory, sets the sample's status and returns false.
bool within_memory(Sample& sample, const std::function<void()>& part) {
  try {
    part();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    sample.status = SampleStatus::kOutOfMemory;
    sample.status_note = error.what();
    return false;
  }
}

// Times the steps after the first, which is the warm-up.
class StepClock {
 public:
  void step() {
    const Clock::time_point now = Clock::now();
    if (steps_ > 0) seconds_ += std::chrono::duration<double>(now - last_).count();
    last_ = now;
    ++steps_;
  }
  std::optional<double> seconds_per_step() const {
    return steps_ > 1 ? std::optional<double>(seconds_ / (steps_ - 1)) : std::nullopt;
  }
  int steps() const { return steps_; }

 private:
  Clock::time_point last_;
  double seconds_ = 0;
  int steps_ = 0;
};

void run_job(const ProbeRequest& request, const JobRunner& runner, ProbeTarget& target,
             Allocator& allocator, RunTracer* tracer, Stages& stages, Sample& sample) {
  const RecordingWorkspaces workspaces(target.workspaces(), target.convolutions(),
                                       target.transforms());
  Session session(target.device(), allocator, workspaces, runner.policy(target.environment()));
  if (tracer != nullptr) tracer->follow(session);
  StepClock clock;
  const auto reached = [&](std::string_view stage) {
    target.device().synchronize();
    if (stage == "tensors") {
      stages.read("tensors");
      return;
    }
    clock.step();
    if (clock.steps() == 1) stages.read("warmup");
  };
  if (within_memory(sample, [&] { runner.run(session, request.job, reached); }))
    stages.read("steps");
  sample.seconds_per_step = clock.seconds_per_step();
  sample.workspaces = workspaces.requests();
  const AllocatorStatistics& statistics = allocator.statistics();
  sample.allocated_peak = Bytes{statistics.allocated_bytes.all.peak};
  sample.reserved_peak = Bytes{statistics.reserved_bytes.all.peak};
}

Sample take_sample(const ProbeRequest& request, const JobRunner& runner, ProbeTarget& target,
                   Stages& stages) {
  Sample sample;
  if (!within_memory(sample, [&] { use_libraries(request, runner, target, stages); })) {
    sample.stages = stages.readings();
    return sample;
  }
  CachingAllocator caching(target.memory());
  target.prepare(caching);
  std::optional<TraceFile> file;
  std::optional<RunTracer> tracer;
  if (!request.trace.empty()) {
    file.emplace(request.trace, request.device);
    tracer.emplace(caching, file->writer);
  }
  Allocator& allocator = tracer ? static_cast<Allocator&>(*tracer) : caching;

  const MemoryMeter& meter = target.meter();
  Sampler sampler(meter, kSamplingInterval);
  run_job(request, runner, target, allocator, tracer ? &*tracer : nullptr, stages, sample);
  const Bytes sampled = sampler.stop();
  if (file) file->writer.finish();

  const Bytes highest = std::max(stages.highest(), sampled);
  sample.device_peak = std::max(highest, meter.high_water().value_or(highest)) - stages.baseline();
  sample.device_metric = meter.metric();
  if (const std::string why = meter.disturbance();
      !why.empty() && sample.status == SampleStatus::kOk) {
    sample.status = SampleStatus::kDisturbed;
    sample.status_note = why;
  }
  sample.stages = stages.readings();
  return sample;
}

}  // namespace

ProbeReply measure(const ProbeRequest& request, const JobRunner& runner) {
  const DeviceName device = parse_device(request.device);
  const std::unique_ptr<ProbeTarget> target = make_target(device, request.ceiling, request.seed);
  Stages stages(target->meter());
  std::optional<DriverActivity> activity;
  if (request.driver_records) stages.follow(activity.emplace(device.index));
  target->open();
  stages.read("context");
  ProbeReply reply;
  reply.environment = target->environment();
  reply.memory_free = target->memory_free();
  reply.resident_threads = target->resident_threads();
  if (!request.workload.empty()) reply.sample = take_sample(request, runner, *target, stages);
  if (activity) reply.driver = activity->finish();
  return reply;
}

}  // namespace memfathom
