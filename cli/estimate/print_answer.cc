#include "cli/estimate/print_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>

#include "cli/estimate/rule_text.h"
#include "cli/language/language.h"
#include "cli/text/estimate_text.h"
#include "cli/text/gpu_text.h"
#include "cli/text/holders_text.h"
#include "cli/text/recommend_text.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "estimator/job/describe.h"
#include "estimator/json/answer_json.h"
#include "estimator/json/estimate_json.h"
#include "kernels/memory/trace/snapshot_writer.h"

namespace memfathom {
namespace {

// Points to `recommend` if no single change is enough.
std::string hint_of(const std::vector<Suggestion>& suggestions, Language language) {
  const bool enough = std::any_of(suggestions.begin(), suggestions.end(),
                                  [](const Suggestion& one) { return one.fits; });
  if (enough) return "";
  return translated(language,
                    "no single change is enough; run memfathom recommend for combinations") +
         "\n";
}

const Trace& trace_of(const JobInput& input) {
  const Trace* trace = input.job.model.trace();
  if (trace == nullptr) {
    throw Error(ErrorKind::kUsage,
                "--by needs a recorded step (model.trace); memfathom capture train.py records one");
  }
  return *trace;
}

void keep_snapshot(const Trace& trace, const std::string& path) {
  std::ostringstream bytes;
  write_snapshot(trace, bytes);
  write_file_atomically(path, bytes.str());
}

void print_text(const EstimateAnswer& answer, const JobInput& input, bool explain,
                const Context& context) {
  const Estimate& estimate = answer.estimate;
  const bool for_people = context.format != Format::kCsv;
  if (answer.gpu != nullptr && for_people) context.out << gpu_text(*answer.gpu, context);
  context.out << estimate_text(estimate, describe(input.document, input.job), context, explain);
  if (answer.rule && for_people) context.out << rule_text(*answer.rule, estimate, context.language);
  if (!estimate.suggestions.empty() && for_people)
    context.out << "\n"
                << translated(context.language, "changes that save memory") << ":\n"
                << suggestions_text(estimate.suggestions, input.is_open(), context)
                << hint_of(estimate.suggestions, context.language);
}

}  // namespace

ExitCode verdict_code(const Estimate& estimate, bool strict) {
  if (estimate.verdict.status == VerdictStatus::kDoesNotFit) return ExitCode::kNo;
  return strict && is_undecided(estimate) ? ExitCode::kUndecided : ExitCode::kYes;
}

void print_answer(const EstimateAnswer& answer, const JobInput& input, const AnswerOptions& options,
                  const Estimator& estimator, Context& context) {
  std::optional<PeakHolders> holders;
  HolderKey key = HolderKey::kModule;
  if (!options.by.empty()) {
    key = parse_holder_key(options.by);
    holders = peak_holders(trace_of(input), key);
  }
  if (!options.snapshot.empty()) keep_snapshot(estimator.history(input.job), options.snapshot);
  if (context.format == Format::kJson) {
    nlohmann::ordered_json json = answer_json(answer, input);
    if (holders) json["at_peak"] = holders_json(*holders, key);
    if (options.live != nullptr) json["live"] = *options.live;
    context.out << to_text(json, kIndented) << '\n';
    return;
  }
  print_text(answer, input, options.explains, context);
  if (holders) context.out << holders_text(*holders, key, context);
}

}  // namespace memfathom
