// Any YAML or JSON is a job that can be built and, if it is small, run dry, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/document.h"
#include "core/error.h"
#include "estimator/answer/estimate.h"
#include "estimator/job/read_job.h"
#include "estimator/job_model/built_model.h"
#include "estimator/json/estimate_json.h"
#include "estimator/run/dry_run.h"
#include "tests/fuzz/no_files.h"

namespace {

using namespace memfathom;

// A run takes time for every block, module and token; correctness shows on small ones.
bool is_small(const Job& job) {
  constexpr std::int64_t kParameters = 10'000'000;
  constexpr std::int64_t kTokens = 16;
  constexpr std::int64_t kPairs = 1000;  // a preference loss is worked out pair by pair
  if (job.training.settings.new_tokens > kTokens || job.model.trace() != nullptr ||
      job.training.batch_size > kPairs || job.training.evaluation_batch > kPairs)
    return false;
  return count_parameters(job) <= kParameters;
}

void answer(const Job& job) {
  if (!is_small(job)) return;
  const DryRun run = run_dry(job, {});
  if (run.reserved_peak < run.allocated_peak) std::abort();
  EstimateContext context;
  context.explains = true;
  const Estimate estimate = make_estimate(job, run, context);
  Bytes sum;
  for (const ComponentLine& line : estimate.components) {
    if (line.bytes.count() < 0) std::abort();
    sum += line.bytes;
  }
  if (sum != estimate.totals.device_peak) std::abort();
  to_text(estimate_json(estimate), kOneLine);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const DocumentLimits limits{.max_tree_bytes = std::size_t{16} << 20};
  try {
    answer(read_job(parse_document({reinterpret_cast<const char*>(data), size}, "", limits),
                    NoFiles()));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
