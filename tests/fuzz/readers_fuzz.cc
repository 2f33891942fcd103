// Any YAML or JSON is a job or an Error, whatever configuration it pretends to be; what was merged
// can be written back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/document.h"
#include "core/error.h"
#include "estimator/job/read_job.h"
#include "estimator/readers/builtin_family.h"
#include "estimator/readers/merge.h"
#include "estimator/readers/write_back.h"
#include "tests/fuzz/no_files.h"

namespace {

void read_as(const memfathom::Node& tree, memfathom::FileFormat format) {
  try {
    memfathom::MergedJob job = memfathom::merge_files({memfathom::read_tree(tree, format)});
    memfathom::write_back(job.files, {{"training.batch_size", memfathom::Node::integer(1)},
                                      {"parallel.zero_stage", memfathom::Node::integer(2)}});
    memfathom::complete_builtin_family(job.document, job.assumptions);
    memfathom::read_job(job.document, memfathom::NoFiles());
  } catch (const memfathom::Error&) {
    // a sentence for the user is a fine answer
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memfathom::DocumentLimits limits{.max_tree_bytes = std::size_t{16} << 20};
  try {
    const memfathom::Node tree =
        memfathom::parse_document({reinterpret_cast<const char*>(data), size}, "", limits);
    read_as(tree, memfathom::detect_format(tree));
    for (const auto& format : memfathom::kEnumNames<memfathom::FileFormat>)
      read_as(tree, format.value);
  } catch (const memfathom::Error&) {
  }
  return 0;
}
