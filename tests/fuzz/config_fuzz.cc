// Any JSON is a config.json that can be built and, if it is small, trained one step, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/document.h"
#include "core/error.h"
#include "estimator/models/factory.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/memory/allocator/bare_allocator.h"
#include "tests/fuzz/no_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  constexpr std::int64_t kSmall = 10'000'000;
  const DocumentLimits limits{.max_tree_bytes = std::size_t{16} << 20};
  try {
    Node model = Node::map();
    model.set("config", parse_json({reinterpret_cast<const char*>(data), size}, "", 1, limits));
    DryDevice device;
    BareAllocator allocator;
    Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
    Builder builder(session, {});
    ModelSettings settings;
    settings.sequence_length = 8;
    std::vector<std::string> assumptions;
    const std::unique_ptr<Network> network =
        make_network(builder, resolve_model(model, NoFiles()), settings, assumptions);
    if (builder.parameter_count() > kSmall) return 0;
    network->load_batch(1, true);
    run_backward(network->loss(nullptr));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
