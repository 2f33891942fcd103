#include "estimator/models/factory.h"

#include "core/error.h"
#include "estimator/models/stack/stack_network.h"

namespace memfathom {

std::unique_ptr<Network> make_network(Builder& builder, const Node& model, const ModelSettings& settings,
                                      std::vector<std::string>&) {
  if (model.find("layers") != nullptr) return make_stack_network(builder, model, settings);
  model.refuse("this way of naming a model is not known");
}

}  // namespace memfathom
