// AdmissionReview: what Kubernetes asks a webhook (admission.k8s.io/v1), and its answer.
//
// What a Pod trains is read from its annotation `memfathom.io/job` (a job file's text), else from
// the command of the container that asks for GPUs. Nothing is opened or executed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memfathom {

// A Pod that the object is or makes: a Job's template, each replica type of a PyTorchJob.
struct ReviewedPod {
  std::string where;        // "spec.template"; empty: the object itself
  nlohmann::json job;       // {"job": "..."} or {"command": ...}: a part of a request; else null
  std::string gpu;          // the GPU's name; empty: nothing names it
  std::string unknown_gpu;  // a product that is not known
  std::int64_t gpus = 0;    // of all its replicas
};

struct AdmissionReview {
  std::string uid;
  bool is_creation = true;     // other operations are let through
  bool is_controlled = false;  // made by a controller, whose own object was judged
  bool has_annotations = false;
  std::vector<ReviewedPod> pods;  // those that ask for GPUs
};

// Throws Error(kInput) for what is no AdmissionReview of admission.k8s.io/v1 with a request. An
// object of an unknown shape makes no Pods.
AdmissionReview read_review(std::string_view body);

struct ReviewAnswer {
  bool is_allowed = true;
  std::vector<std::string> warnings;  // kubectl shows them
  std::string refusal;
  std::string annotation;  // memfathom.io/estimate; empty: none
};

// The AdmissionReview that answers it. `patches`: with the annotation as a JSON patch.
std::string answer_text(const AdmissionReview& review, const ReviewAnswer& answer, bool patches);

// "NVIDIA-A100-SXM4-80GB", as GPU Feature Discovery labels nodes. Empty if unknown.
std::string gpu_of_product(std::string product);

}  // namespace memfathom
