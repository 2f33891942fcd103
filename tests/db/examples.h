// Records as the profiler and the fitter make them, for the tests and benchmarks of db/.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/calibration.h"
#include "core/environment.h"
#include "core/sample.h"
#include "db/records.h"

namespace memfathom::examples {

inline Environment a100() {
  Environment e;
  e.gpu = "NVIDIA A100-SXM4-40GB";
  e.architecture = "sm_80";
  e.memory_total = Bytes{42'297'786'368};
  e.ecc = true;
  e.driver = "550.54.15";
  e.cuda = "12.4";
  e.cublas = "12.4.5";
  e.cudnn = "9.1.0";
  e.cufft = "11.2.1";
  e.framework = "pytorch";
  e.framework_version = "2.6.0";
  e.os = "Debian GNU/Linux 12";
  return e;
}

// Another GPU of the same architecture.
inline Environment a30() {
  Environment e = a100();
  e.gpu = "NVIDIA A30";
  e.memory_total = Bytes{25'300'000'000};
  return e;
}

inline Environment after_upgrade(Environment e) {
  e.driver = "570.86.10";
  e.cudnn = "9.7.1";
  return e;
}

inline Environment virtual_gpu() {
  Environment e;
  e.gpu = "virtual:tiny";
  e.architecture = "virtual";
  e.framework = "memfathom";
  return e;
}

inline Run run_of(const Environment& environment,
                  const std::string& started = "2026-11-16T10:00:00Z") {
  Run run;
  run.environment = environment;
  run.plan = "quick";
  run.started = started;
  run.program = "0.1.0";
  return run;
}

// A sample with all stages and four workspaces; `i` makes it differ from the others.
inline Sample sample(int i) {
  Sample s;
  s.workload = fmt::format("conv/c64/b{}/fp32", i);
  s.family = "conv";
  s.job = fmt::format(
      R"({{"model":{{"input":{{"shape":[3,224,224]}},"layers":[{{"in":3,"kernel":7,"out":64,"type":"conv2d"}}]}},"training":{{"batch_size":{}}}}})",
      i);
  s.validation = i % 5 == 0;
  s.allocated_peak = Bytes{1'000'000 + 512LL * i};
  s.reserved_peak = Bytes{2'097'152LL * (1 + i)};
  s.device_peak = Bytes{500'000'000 + 2'097'152LL * i};
  s.device_metric = "nvml-process";
  s.seconds_per_step = 0.001 * (1 + i % 7);
  s.repeats = 3;
  s.spread = 0.001;
  s.stop_criterion = "spread below 0.5 %";
  std::int64_t used = 0;
  for (const char* stage :
       {"baseline", "context", "cublas", "cudnn", "cufft", "tensors", "warmup", "steps"}) {
    s.stages.push_back({stage, Bytes{used}});
    used += 41'943'040 + i;
  }
  for (const char* kind : {"forward", "data_gradient", "weight_gradient", "forward"}) {
    s.workspaces.push_back({Library::kCudnn, fmt::format("convolution {}", kind),
                            fmt::format("conv {} fp32 nchw x[{},3,224,224] w[64,3,7,7]", kind, i),
                            Bytes{8'388'608 + i}});
  }
  return s;
}

// A usable calibration with `coefficients` coefficients, their covariance, and `ratios` ratios in
// two groups.
inline Calibration calibration(const Environment& environment, const std::string& created,
                               int coefficients = 5, int ratios = 20) {
  Calibration c;
  c.name = "a100-40gb/pytorch";
  c.environment = environment;
  c.created = created;
  c.source = Source::kMeasured;
  c.provenance = "profile of this machine";
  c.usable = true;
  c.samples = 120;
  for (int i = 0; i < coefficients; ++i) {
    c.coefficients.push_back({fmt::format("phi.cudnn.forward.{}", i), 1.0 / (i + 3), 0.01 * i, "1",
                              i % 2 == 0 ? Source::kFitted : Source::kDefault, i % 2 != 0, 10 + i});
  }
  for (int i = 0; i < coefficients * coefficients; ++i) c.covariance.push_back(1e-9 / (i + 1));
  c.ratios = {{"", {}}, {"conv", {}}, {"mlp", {}}};  // mlp was sampled and did not differ
  for (int i = 0; i < ratios; ++i) {
    c.ratios[i % 2 == 0 ? 0 : 1].ratios.push_back(0.9 + 0.2 * i / ratios);
  }
  c.quality.held_out_median_error = 0.004;
  c.quality.held_out_p90_error = 0.02;
  c.quality.coverage_90 = 0.91;
  c.quality.validation_rows = 24;
  return c;
}

inline Observation observation(int i) {
  Observation o;
  o.job = fmt::format(R"({{"model":{{"preset":"gpt2"}},"training":{{"batch_size":{}}}}})", i);
  o.metric = Metric::kDevice;
  if (i % 3 == 0) {
    o.fits = false;
  } else {
    o.bytes = Bytes{1'000'000'000LL * i};
  }
  o.gpu = "a100-40gb";
  o.framework = "pytorch";
  o.source = "team";
  o.group = "gpt2";
  o.note = "it's \"quoted\"";
  return o;
}

}  // namespace memfathom::examples
