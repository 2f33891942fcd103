// admission: whether a job may start, given what a scheduler knows about it.
//
// Fails open: a job is refused only if it was understood and does not fit with a probability above
// the limit. Everything else is let through, and the sentence says why.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/enum_names.h"
#include "estimator/session/estimator.h"
#include "estimator/session/job_input.h"

namespace memfathom {

enum class Decision : std::uint8_t { kAllow, kNote, kRefuse };

template <>
inline constexpr auto kEnumNames<Decision> = std::to_array<EnumName<Decision>>(
    {{Decision::kAllow, "allow"}, {Decision::kNote, "note"}, {Decision::kRefuse, "refuse"}});

struct AdmissionQuestion {
  std::string gpu;            // where it will run, whatever its description says; empty: as it says
  std::int64_t gpus = 0;      // that the job asks for altogether; 0: unknown
  double probability = 0.95;  // above this probability of not fitting a job is refused
  std::chrono::milliseconds advice{1000};  // how long changes are tried that would make it fit
};

struct Admission {
  Decision decision = Decision::kAllow;
  std::string sentence;  // one line
};

// `input.document` as it was read; it is completed here. Throws Error(kInput) if it describes no
// job.
Admission judge_admission(JobInput& input, const AdmissionQuestion& question,
                          const Estimator& estimator);

}  // namespace memfathom
