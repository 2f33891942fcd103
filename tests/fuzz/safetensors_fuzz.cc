// Any bytes are a safetensors header or an Error, and what it names can be built or is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "estimator/models/stored/stored_network.h"
#include "estimator/models/stored/stored_tensors.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/tensor/engine.h"
#include "kernels/memory/allocator/bare_allocator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const std::vector<StoredTensor> tensors = read_safetensors_header(input, "fuzz");
    DryDevice device;
    BareAllocator allocator;
    Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
    Builder builder(session, {});
    ModelSettings settings;
    settings.sequence_length = 4;
    std::vector<std::string> assumptions;
    const std::unique_ptr<Network> network =
        make_stored_network(builder, Node::map(), tensors, settings, assumptions);
    network->load_batch(1, true);
    run_backward(network->loss(nullptr));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
