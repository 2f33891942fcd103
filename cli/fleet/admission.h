// admission: a submission as Slurm's filters hand it over, and whether it may pass
// (estimator/session/admission.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/session/admission.h"

namespace memfathom {

struct AdmissionRequest {
  bool enforces = false;      // in the controller, which reads files with its own rights
  double probability = 0.95;  // above this probability of not fitting a job is refused
  std::map<std::string, std::string> gpus;  // gres type -> name of the GPU
  std::string comment, job, work_dir;
  std::string resources;  // all of them; the three below are its parts, where they are known
  std::string per_node, per_job, per_task;
  std::int64_t nodes = 0, tasks = 0;  // 0: unknown
  std::optional<uid_t> user;          // whose job it is: files are read with this user's rights
  std::string script, script_name, script_path;  // the text; its name; its path if it is known
};

// Reads what the filters of filters/ write. Throws Error(kInput).
AdmissionRequest admission_request(std::string_view text, const std::string& file);

// Never throws for what a user wrote.
Admission admit(const AdmissionRequest& request, const Estimator& estimator);

// How many GPUs a job asks for at most; 0 if it cannot be told.
std::int64_t gpus_asked_for(const AdmissionRequest& request);

// The GPU of a gres type ("rtx_4090", "a100", "nvidia_a100-sxm4-80gb"): as `named` says, else the
// one with the largest memory among those of that name. Empty if unknown.
std::string gpu_of_gres_type(const std::string& type,
                             const std::map<std::string, std::string>& named);

// "a100=a100-80gb,h100=h100-94gb". Throws Error(kInput) for an unknown GPU or another form.
std::map<std::string, std::string> gpu_names_in(std::string_view text, const std::string& where);

}  // namespace memfathom
