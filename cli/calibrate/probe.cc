// The process of one sample: a request on standard input, the answer on standard output.
#include <sys/prctl.h>

#include <csignal>
#include <iostream>
#include <sstream>

#include "cli/calibrate/estimator_runner.h"
#include "cli/commands.h"
#include "profiler/protocol.h"

namespace memfathom {

ExitCode run_probe_command(const Arguments&, Context& context) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a probe must not outlive its parent
  std::ostringstream message;
  message << std::cin.rdbuf();
  context.out << to_message(measure(request_from(message.str()), EstimatorRunner()));
  return ExitCode::kYes;
}

}  // namespace memfathom
