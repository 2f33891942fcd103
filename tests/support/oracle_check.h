// Oracle checks: a row of the oracle against our run of it: figures within a tolerance, events in
// the recorded order.
#pragma once

#include <string>
#include <vector>

#include "tests/support/oracle_job.h"

namespace memfathom {

// Parameters, buffers, gradients and states exactly, peaks within 1 % (4 KiB are always allowed),
// for every row. Prints how many rows are exact and the worst of the others.
void expect_rows_agree(const std::vector<OracleRow>& rows, const NetworkMaker& make);

// kOther: the recorded model registers its parameters in an order of its own, so the optimizer's
// part is compared as a whole.
enum class ParameterOrder { kRecorded, kOther };

// The allocations and frees of oracle/traces/{name}.jsonl.gz, in its order.
void expect_trace_agrees(const std::string& name, const std::vector<OracleRow>& rows,
                         const NetworkMaker& make,
                         ParameterOrder order = ParameterOrder::kRecorded);

}  // namespace memfathom
