// The admission webhook of Kubernetes: POST /validate and /mutate over TLS, GET /healthz and
// /metrics.
//
// It fails open: only a job that was understood and does not fit is refused. Questions are answered
// by sealed workers, which open no file.
#pragma once

#include <chrono>
#include <string>

namespace memfathom {

struct AdmissionOptions {
  std::string host = "0.0.0.0";
  int port = 8443;       // 0: any free one
  std::string database;  // empty: none
  std::string certificate, key;
  std::string gpu;  // of Pods that name no product; empty: they are let through
  double probability = 0.95;
  std::chrono::milliseconds limit{2'000};  // for one review
  std::size_t workers = 2;
};

// Serves until a signal ends the process. Prints the address to standard output. Throws Error.
void serve_admission(const AdmissionOptions& options);

}  // namespace memfathom
