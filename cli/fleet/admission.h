// admission: whether a job may be submitted, given what the scheduler knows about it.
//
// Fails open: a job is refused only if it was understood and does not fit with a probability above
// the limit. Everything else is let through, and the sentence says why.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "estimator/session/estimator.h"

namespace memfathom {

struct AdmissionRequest {
  bool enforces = false;      // in the controller, which reads files with its own rights
  double probability = 0.95;  // above this probability of not fitting a job is refused
  std::map<std::string, std::string> gpus;  // gres type -> name of the GPU
  std::string comment, job, resources, work_dir;
  std::string script, script_name, script_path;  // the text; its name; its path if it is known
};

// Reads what the filters of filters/ write. Throws Error(kInput).
AdmissionRequest admission_request(std::string_view text, const std::string& file);

enum class Decision { kAllow, kNote, kRefuse };

struct Admission {
  Decision decision = Decision::kAllow;
  std::string sentence;  // one line
};

// Never throws for what a user wrote.
Admission admit(const AdmissionRequest& request, const Estimator& estimator);

// The GPU of a gres type ("rtx_4090", "a100", "nvidia_a100-sxm4-80gb"): as `named` says, else the
// one with the largest memory among those of that name. Empty if unknown.
std::string gpu_of_gres_type(const std::string& type,
                             const std::map<std::string, std::string>& named);

// "a100=a100-80gb,h100=h100-94gb". Throws Error(kInput) for an unknown GPU or another form.
std::map<std::string, std::string> gpu_names_in(std::string_view text, const std::string& where);

}  // namespace memfathom
