# Sources of the model families, one line per file.
set(MODEL_SOURCES
  models/losses.cc
)
list(TRANSFORM MODEL_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/../")
