#include "tests/support/simulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/fitted_workspaces.h"
#include "core/quantile.h"
#include "kernels/memory/allocator/arithmetic_segments.h"
#include "kernels/memory/allocator/caching_allocator.h"

namespace memfathom::testing {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::int64_t kPage = 2 << 20;
constexpr double kOutliers = 0.05;
constexpr double kMissing = 0.1;
constexpr std::int64_t kCublasWorkspace = 8519680;

using Kind = SyntheticLayer::Kind;

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double log_uniform(std::mt19937_64& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}
std::int64_t whole(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
Bytes bytes(double count) { return Bytes{static_cast<std::int64_t>(count)}; }

SyntheticLayer linear_layer(std::mt19937_64& random, double batch) {
  const double in = log_uniform(random, 64, 4096);
  const double out = log_uniform(random, 64, 4096);
  return {Kind::kLinear, bytes(4 * (in * out + out)), bytes(4 * batch * out), bytes(0), {}, {}};
}

SyntheticLayer convolution_layer(std::mt19937_64& random, std::int64_t batch) {
  SyntheticLayer layer;
  layer.kind = Kind::kConvolution;
  const std::int64_t in = whole(random, 3, 128);
  const std::int64_t out = whole(random, 8, 128);
  const std::int64_t kernel = 1 + 2 * whole(random, 0, 3);
  const std::int64_t size = whole(random, 8, 96);
  layer.convolution.input = {batch, in, size, size};
  layer.convolution.weight = {out, in, kernel, kernel};
  layer.convolution.stride = {1, 1};
  layer.convolution.padding = {kernel / 2, kernel / 2};
  layer.convolution.dilation = {1, 1};
  const WorkspaceFeatures features = features_of(layer.convolution);
  layer.parameters = bytes(features[kTermWeights]);
  layer.output = bytes(features[kTermOutput]);
  return layer;
}

SyntheticLayer transform_layer(std::mt19937_64& random, std::int64_t batch) {
  SyntheticLayer layer;
  layer.kind = Kind::kTransform;
  const std::int64_t size = whole(random, 16, 256);
  layer.transform.extents = {size, size};
  layer.transform.batch = batch * whole(random, 4, 32);
  const WorkspaceFeatures features = features_of(layer.transform);
  layer.output = bytes(features[kTermInput]);
  layer.temporary = bytes(features[kTermOutput]);
  layer.parameters = bytes(log_uniform(random, 1e4, 1e7));
  return layer;
}

// One run through the allocator, remembering what is alive when the allocated peak is reached.
class Runner {
 public:
  enum Tag { kTagStates, kTagActivations, kTagTemporaries, kTagLogits, kTagWorkspaces, kTagCount };

  Allocation take(Bytes size, Tag tag) {
    const Allocation allocation = allocator_.allocate(size);
    live_[tag] += allocation.bytes;
    if (allocator_.statistics().allocated_bytes.all.current > highest_) {
      highest_ = allocator_.statistics().allocated_bytes.all.current;
      at_peak_ = live_;
    }
    return allocation;
  }
  void give(const Allocation& allocation, Tag tag) {
    live_[tag] -= allocation.bytes;
    allocator_.free(allocation);
  }
  void brief(Bytes size, Tag tag) { give(take(size, tag), tag); }

  Bytes reserved() const { return Bytes{allocator_.statistics().reserved_bytes.all.peak}; }
  ReplayedJob result() const {
    ReplayedJob job;
    job.allocated_peak = Bytes{allocator_.statistics().allocated_bytes.all.peak};
    job.reserved_peak = reserved();
    job.states = at_peak_[kTagStates];
    job.activations = at_peak_[kTagActivations];
    job.temporaries = at_peak_[kTagTemporaries];
    job.logits = at_peak_[kTagLogits];
    job.workspaces = at_peak_[kTagWorkspaces];
    return job;
  }

 private:
  ArithmeticSegments segments_;
  CachingAllocator allocator_{segments_};
  std::array<Bytes, kTagCount> live_{};
  std::array<Bytes, kTagCount> at_peak_{};
  std::int64_t highest_ = 0;
};

Bytes scaled(Bytes size, double share) { return bytes(static_cast<double>(size.count()) * share); }

// The workspaces of a layer in forward (backward: both gradients), asked of the model and recorded.
void call_libraries(const SyntheticLayer& layer, bool backward, const WorkspaceModel& model,
                    Runner* runner, Replay* result, bool record) {
  std::vector<WorkspaceRow> asked;
  if (layer.kind == Kind::kConvolution) {
    ConvolutionQuery query = layer.convolution;
    for (const ConvolutionKind kind : {ConvolutionKind::kForward, ConvolutionKind::kDataGradient,
                                       ConvolutionKind::kWeightGradient}) {
      if ((kind != ConvolutionKind::kForward) != backward) continue;
      query.kind = kind;
      asked.push_back({Library::kCudnn, operation_of(query), features_of(query),
                       model.convolution(query).bytes});
    }
  }
  if (layer.kind == Kind::kTransform) {
    FftQuery query = layer.transform;
    if (backward) query.kind = FftKind::kComplexToReal;
    asked.push_back(
        {Library::kCufft, operation_of(query), features_of(query), model.fft(query).bytes});
  }
  for (const WorkspaceRow& row : asked) {
    runner->brief(row.measured, Runner::kTagWorkspaces);
    if (record) result->workspaces.push_back(row);
  }
}

}  // namespace

SyntheticJob random_job(std::mt19937_64& random) {
  SyntheticJob job;
  const std::int64_t family = whole(random, 0, 4);
  const std::int64_t depth = whole(random, 2, 24);
  const std::int64_t batch = whole(random, 1, 32);
  static constexpr std::array<const char*, 5> kFamilies{"mlp", "conv", "fno", "pointwise",
                                                        "transformer"};
  job.family = kFamilies[static_cast<std::size_t>(family)];
  for (std::int64_t i = 0; i < depth; ++i) {
    const auto tokens = static_cast<double>(batch * 64);
    if (job.family == "conv") {
      job.layers.push_back(i % 8 == 7 ? linear_layer(random, static_cast<double>(batch))
                                      : convolution_layer(random, batch));
    } else if (job.family == "fno") {
      job.layers.push_back(i % 2 == 0 ? transform_layer(random, batch)
                                      : linear_layer(random, tokens));
    } else if (job.family == "pointwise") {
      job.layers.push_back({Kind::kElementwise,
                            bytes(log_uniform(random, 1e3, 1e6)),
                            bytes(log_uniform(random, 1e5, 1e8)),
                            bytes(log_uniform(random, 1e4, 1e7)),
                            {},
                            {}});
    } else {
      job.layers.push_back(linear_layer(random, tokens));
      if (job.family == "transformer") job.layers.back().temporary = job.layers.back().output;
    }
  }
  job.logits = bytes(4.0 * static_cast<double>(batch) * log_uniform(random, 10, 50000));
  // A family has kernels that it always needs beside those that its shapes lead to.
  static constexpr std::array<std::int64_t, 5> kFewestKernels{1, 2, 3, 1, 3};
  for (int& kernels : job.kernels)
    kernels = static_cast<int>(whole(random, kFewestKernels[static_cast<std::size_t>(family)],
                                     kFewestKernels[static_cast<std::size_t>(family)] + 3));
  job.iterations = static_cast<int>(whole(random, 3, 6));
  job.seconds_per_iteration = log_uniform(random, 0.05, 4);
  job.seconds_at_last_sample =
      std::floor(job.iterations * job.seconds_per_iteration + uniform(random, 0, 6));
  return job;
}

Replay replay(const SyntheticJob& job, const WorkspaceModel& workspaces) {
  Replay result;
  Runner run;
  std::vector<Allocation> gradients(job.layers.size());
  bool cublas = false;
  for (const SyntheticLayer& layer : job.layers) {
    run.take(layer.parameters, Runner::kTagStates);
    if (layer.kind == Kind::kLinear) cublas = true;
  }
  if (cublas) run.take(Bytes{kCublasWorkspace}, Runner::kTagWorkspaces);
  for (int iteration = 0; iteration < job.iterations; ++iteration) {
    const bool is_short = iteration == 2;  // the last batch of an epoch; a full one follows
    const double share = is_short ? 0.37 : 1;
    std::vector<Allocation> saved;
    for (const SyntheticLayer& layer : job.layers) {
      const Allocation temporary =
          run.take(scaled(layer.temporary, share), Runner::kTagTemporaries);
      saved.push_back(run.take(scaled(layer.output, share), Runner::kTagActivations));
      if (!is_short) call_libraries(layer, false, workspaces, &run, &result, iteration == 0);
      run.give(temporary, Runner::kTagTemporaries);
    }
    const Allocation logits = run.take(scaled(job.logits, share), Runner::kTagLogits);
    if (cublas && iteration == 0) run.take(Bytes{kCublasWorkspace}, Runner::kTagWorkspaces);
    for (std::size_t i = job.layers.size(); i-- > 0;) {
      const Allocation gradient =
          run.take(scaled(job.layers[i].output, share), Runner::kTagTemporaries);
      if (!gradients[i]) gradients[i] = run.take(job.layers[i].parameters, Runner::kTagStates);
      if (!is_short) call_libraries(job.layers[i], true, workspaces, &run, &result, iteration == 0);
      run.give(saved[i], Runner::kTagActivations);
      run.give(gradient, Runner::kTagTemporaries);
    }
    run.give(logits, Runner::kTagLogits);
    for (const SyntheticLayer& layer : job.layers) {
      if (iteration > 0) break;  // the optimizer's moments appear in the first step
      run.take(layer.parameters, Runner::kTagStates);
      run.take(layer.parameters, Runner::kTagStates);
    }
    result.reserved_after.push_back(run.reserved());
  }
  result.job = run.result();
  result.job.layers = static_cast<std::int64_t>(job.layers.size());
  for (const SyntheticLayer& layer : job.layers) {
    result.job.uses_cublas |= layer.kind == Kind::kLinear;
    result.job.uses_cudnn |= layer.kind == Kind::kConvolution;
    result.job.uses_cufft |= layer.kind == Kind::kTransform;
  }
  return result;
}

// cuDNN's habit: many plans want input + output, small ones nothing, large ones fall to another
// algorithm.
class SimulatedGpu::HiddenWorkspaces final : public WorkspaceModel {
 public:
  explicit HiddenWorkspaces(const SimulatedGpu& gpu) : gpu_(gpu) {}

  WorkspaceSize convolution(const ConvolutionQuery& query) const override {
    const WorkspaceFeatures f = features_of(query);
    if (query.weight[2] == 1) return {Bytes{0}, Source::kMeasured};
    // 3x3 kernels run another algorithm, which needs less.
    const double part = query.weight[2] == 3 ? 0.6 : 1;
    const double wanted =
        part * gpu_.workspace_factor_ * (f[kTermInput] + f[kTermOutput]) + f[kTermWeights];
    return {bytes(wanted) > gpu_.workspace_cap_ ? bytes(8 * f[kTermWeights]) : bytes(wanted),
            Source::kMeasured};
  }
  WorkspaceSize fft(const FftQuery& query) const override {
    const bool power_of_two = (query.extents[0] & (query.extents[0] - 1)) == 0;
    return {bytes(features_of(query)[kTermLowered] * (power_of_two ? 1 : 2)), Source::kMeasured};
  }
  WorkspaceSize attention(const AttentionQuery&) const override { return {}; }

 private:
  const SimulatedGpu& gpu_;
};

SimulatedGpu::SimulatedGpu(std::uint64_t seed, PlantedTerm planted) : planted_(planted) {
  std::mt19937_64 random(seed * 7919 + 17);
  full_.context = log_uniform(random, 200, 1600) * kMiB;
  full_.cublas = log_uniform(random, 20, 150) * kMiB;
  full_.cudnn = log_uniform(random, 60, 500) * kMiB;
  full_.cufft = log_uniform(random, 15, 150) * kMiB;
  noise_bytes_ = uniform(random, 0.5, 5) * kMiB;
  noise_relative_ = log_uniform(random, 1e-5, 2e-3);
  workspace_factor_ = uniform(random, 0.8, 1.2);
  workspace_cap_ = bytes(log_uniform(random, 256, 4096) * kMiB);
  truth_.context = full_.context;
  std::mt19937_64 population(seed * 104729 + 3);
  std::map<Kind, std::vector<double>> sizes;
  for (int i = 0; i < 2000; ++i) {
    const SyntheticJob job = random_job(population);
    for (const Kind kind : {Kind::kLinear, Kind::kConvolution, Kind::kTransform}) {
      const double size = module_bytes(job, kind);
      if (size > 0) sizes[kind].push_back(size);
    }
  }
  truth_.cublas = median(sizes[Kind::kLinear]);
  truth_.cudnn = median(sizes[Kind::kConvolution]);
  truth_.cufft = median(sizes[Kind::kTransform]);
}

// The first kernel loads most of a module, every further one its share.
double SimulatedGpu::module_bytes(const SyntheticJob& job, SyntheticLayer::Kind kind) const {
  const bool used = std::any_of(job.layers.begin(), job.layers.end(),
                                [&](const SyntheticLayer& layer) { return layer.kind == kind; });
  if (!used) return 0;
  const std::array<double, 3> full{full_.cublas, full_.cudnn, full_.cufft};
  const auto library = static_cast<std::size_t>(kind) - static_cast<std::size_t>(Kind::kLinear);
  return full[library] * (0.64 + 0.06 * job.kernels[library]);
}

SimulatedGpu::Reading SimulatedGpu::measure(std::mt19937_64& random) const {
  Reading reading;
  reading.job = random_job(random);
  const Replay run = replay(reading.job, HiddenWorkspaces(*this));
  reading.workspaces = run.workspaces;
  const double seen = reading.job.seconds_at_last_sample / reading.job.seconds_per_iteration;
  const auto last =
      std::clamp<std::size_t>(static_cast<std::size_t>(seen), 1, run.reserved_after.size()) - 1;
  const auto reserved = static_cast<double>(run.reserved_after[last].count());
  double total = full_.context + reserved * (1 + planted_.leak_of_reserved) +
                 planted_.bytes_per_layer * static_cast<double>(reading.job.layers.size());
  for (const Kind kind : {Kind::kLinear, Kind::kConvolution, Kind::kTransform})
    total += module_bytes(reading.job, kind);
  std::normal_distribution<double> normal;
  total += noise_bytes_ * normal(random) + noise_relative_ * total * normal(random);
  if (uniform(random, 0, 1) < kOutliers) total *= uniform(random, 0.7, 1.6);
  reading.measured = bytes(std::max(total, 1.0)).rounded_up(Bytes{kPage});
  return reading;
}

FitRow row_of(const SimulatedGpu::Reading& reading, const WorkspaceModel& workspaces,
              const std::string& id) {
  FitRow row;
  row.id = id;
  row.family = reading.job.family;
  row.measured = reading.measured;
  row.replay = replay(reading.job, workspaces).job;
  return row;
}

Campaign profile(const SimulatedGpu& gpu, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<SimulatedGpu::Reading> readings;
  std::vector<WorkspaceRow> requests;
  Campaign campaign;
  std::map<std::string, int> recorded;
  for (int i = 0; i < count; ++i) {
    SimulatedGpu::Reading reading = gpu.measure(random);
    if (uniform(random, 0, 1) < kMissing) continue;
    for (const WorkspaceRow& row : reading.workspaces) {
      if (++recorded[row.operation] <= 60) requests.push_back(row);
    }
    readings.push_back(std::move(reading));
  }
  Calibration fitted;
  campaign.workspaces = fit_workspaces(requests, FitOptions{});
  fitted.coefficients = campaign.workspaces.coefficients;
  const FittedWorkspaces model(fitted);
  for (const SimulatedGpu::Reading& reading : readings) {
    campaign.rows.push_back(
        row_of(reading, model, fmt::format("{}-{}", reading.job.family, campaign.rows.size())));
  }
  return campaign;
}

}  // namespace memfathom::testing
