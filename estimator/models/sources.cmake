# Sources of the model families, one line per file.
set(MODEL_SOURCES
  models/losses.cc
  models/stack/attention_layers.cc
  models/stack/combinators.cc
  models/stack/dense_layers.cc
  models/stack/fourier_layers.cc
  models/stack/image_layers.cc
  models/stack/keys.cc
  models/stack/layer.cc
  models/stack/stack_network.cc
)
list(TRANSFORM MODEL_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/../")
