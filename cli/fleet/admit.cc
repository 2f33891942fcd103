#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <ostream>

#include "api/local_session.h"
#include "cli/database.h"
#include "cli/fleet/admission.h"
#include "cli/fleet/fleet.h"
#include "cli/option_parser.h"
#include "core/error.h"

namespace memfathom {
namespace {

constexpr std::size_t kMaxRequest = std::size_t{8} << 20;  // Slurm accepts scripts up to 4 MiB

std::string read_request(const std::string& file) {
  std::ifstream input(file, std::ios::binary);
  std::string text(kMaxRequest + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  if (text.empty() || text.size() > kMaxRequest) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is missing, empty or larger than 8 MiB; a filter of `fleet "
                            "install-filter` writes it",
                            file));
  }
  return text;
}

// The controller may run as root, and files are named by whoever submits: they are read with the
// rights of that user. Another SlurmUser cannot change, and keeps its own few rights.
void become(uid_t user) {
  if (geteuid() != 0 || user == 0) return;
  const passwd* const entry = getpwuid(user);
  const gid_t group = entry != nullptr ? entry->pw_gid : static_cast<gid_t>(user);
  const bool has_groups =
      entry != nullptr ? initgroups(entry->pw_name, group) == 0 : setgroups(0, nullptr) == 0;
  if (!has_groups || setgid(group) != 0 || setuid(user) != 0)
    throw Error(ErrorKind::kEnvironment,
                fmt::format("the rights of user {} cannot be taken", user));
}

}  // namespace

// Two lines, since Lua has no JSON: the decision, and the sentence.
ExitCode fleet_admit(const Arguments& arguments, Context& context) {
  std::string file;
  std::int64_t limit = 2;
  OptionParser parser("fleet admit");
  parser.positional("FILE", file);
  parser.option("--limit", limit);
  parser.parse(arguments);
  if (limit < 1 || limit > 60)
    throw Error(ErrorKind::kUsage, fmt::format("--limit is {}; write 1 to 60 seconds", limit));
  alarm(static_cast<unsigned>(limit));  // ends this process: no answer lets the job through
  const AdmissionRequest request = admission_request(read_request(file), file);
  if (request.user) become(*request.user);
  // Paths in a script are seen from the folder it is submitted from.
  if (!request.work_dir.empty() && chdir(request.work_dir.c_str()) != 0)
    context.detail(fmt::format("{} cannot be entered", request.work_dir));
  const LocalSession session(SessionOptions{find_database(context), false});
  Admission admission = admit(request, session.estimator());
  std::replace(admission.sentence.begin(), admission.sentence.end(), '\n', ' ');
  context.out << enum_name(admission.decision) << '\n' << admission.sentence << '\n';
  return admission.decision == Decision::kRefuse ? ExitCode::kNo : ExitCode::kYes;
}

}  // namespace memfathom
