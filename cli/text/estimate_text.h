// Estimates as human-readable text.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/language/language.h"
#include "estimator/answer/estimate.h"

namespace memfathom {

// The job and its parameter counts, followed by an empty line.
std::string job_text(const std::string& job, const Estimate& estimate,
                     Language language = Language::kEnglish);

// `job`: the job in one line. CSV contains only the components.
std::string estimate_text(const Estimate& estimate, const std::string& job, const Context& context,
                          bool explain);

// "fits: 12 GiB of 24 GiB available, 12 GiB left", with a line feed.
std::string verdict_sentence(const Estimate& estimate, bool colour,
                             Language language = Language::kEnglish);

// One word of a verdict in a table: "fits"; in Chinese with its mark.
std::string verdict_text(VerdictStatus status, Language language);

// "device 12 GiB (90 %: 11 GiB to 14 GiB), reserved 11 GiB, allocated 10 GiB in backward", with a
// line feed.
std::string totals_sentence(const Estimate& estimate, Language language = Language::kEnglish);

// The calibration used and its age.
std::string calibration_sentence(const CalibrationNote& note,
                                 Language language = Language::kEnglish);

// "parameters (text_encoder)", "context: module.cublas".
std::string component_name(const ComponentLine& line, Language language = Language::kEnglish);

// "assumed: ...", "not modelled: ..." and "warning: ...", one line each.
std::string remarks_text(const Estimate& estimate, Language language);

}  // namespace memfathom
