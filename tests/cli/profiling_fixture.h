// ProfilingFixture: a temporary database, and probes that fail on request.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "db/store.h"
#include "tests/cli/binary.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {

class ProfilingFixture : public testing::Test {
 protected:
  std::string database() const { return folder_ + "/test.db"; }
  Outcome run(std::vector<std::string> words, const std::vector<std::string>& environment = {}) {
    words.insert(words.begin(), {"--db", database()});
    return run_binary(words, environment);
  }
  // A script that inspects its request before it runs the real probe.
  std::string probe(const std::string& cases) {
    const std::string path = folder_ + "/probe";
    std::ofstream(path) << "#!/bin/sh\nrequest=$(cat)\ncase \"$request\" in\n"
                        << cases
                        << "esac\nprintf '%s' \"$request\" | exec " MEMFATHOM_BINARY " __probe\n";
    chmod(path.c_str(), 0700);
    return "MEMFATHOM_PROBE=" + path;
  }
  std::map<std::string, Sample> samples() const {
    std::map<std::string, Sample> found;
    SampleFilter filter;
    filter.include_virtual = true;
    for (const StoredSample& stored :
         Store::open(database(), Store::Mode::kReadOnly).samples(filter))
      found[stored.sample.workload] = stored.sample;
    return found;
  }

  TemporaryDirectory directory_;
  const std::string folder_ = directory_.path().string();
};

}  // namespace memfathom
