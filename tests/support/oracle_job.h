// Oracle jobs: rows of ../shared/oracle/jobs run on the dry device in the table's own accounting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/document.h"
#include "estimator/models/blocks/settings.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/framework/layers/network.h"
#include "kernels/memory/trace/trace.h"

namespace memfathom {

struct OracleRow {
  std::string id;
  Node config;  // the model's config.json keys
  Node job;
  Node expected;
};

// The rows of jobs/models.jsonl whose model_type `wanted` accepts.
std::vector<OracleRow> read_oracle_rows(
    const std::function<bool(const std::string& model_type)>& wanted);

struct OracleResult {
  std::int64_t parameter_count = 0;
  std::int64_t parameters = 0, buffers = 0, gradients = 0, optimizer_state = 0;  // bytes
  std::int64_t peak_forward = 0, peak_backward = 0, peak_step = 0;               // of iteration 2
  std::int64_t peak_prefill = 0, kv_cache = 0;
  std::vector<TraceEvent> events;  // of the whole run, when asked for
};

using NetworkMaker =
    std::function<std::unique_ptr<Network>(Builder&, const Node& config, const ModelSettings&)>;

// Two iterations (or one forward pass, or a generation), as the oracle ran them. Trace events are
// kept on request.
OracleResult run_oracle_row(const OracleRow& row, const NetworkMaker& make,
                            bool with_events = false);

}  // namespace memfathom
