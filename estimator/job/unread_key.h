// UnreadKey: a key of somebody's file that no reader used and that is not known to be harmless.
#pragma once

#include <string>

namespace memfathom {

struct UnreadKey {
  std::string file;
  std::string key;       // dotted: "fsdp_config.reshard_after_forward"
  std::string concerns;  // model, sizes, precision, ...; empty: nothing that changes memory
  std::string nearest;   // the known key that it resembles; empty: none
  std::string value;     // of a command line, what is unknown: "$BATCH"
  std::string decides;   // the key of the job that it would set, where that is known
};

}  // namespace memfathom
