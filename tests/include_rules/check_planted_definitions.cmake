# Plants a second definition of each sort of type and expects the check to name both places; then types that may have the
# same name.
function(run_check expected_result)
  execute_process(COMMAND "${PYTHON}" "${CHECK}" "${TREE}" OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
  if(NOT result EQUAL expected_result)
    message(FATAL_ERROR "expected ${expected_result}, got ${result}: ${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

function(plant first second name)
  file(REMOVE_RECURSE "${TREE}")
  file(WRITE "${TREE}/fitter/rows.h" "#pragma once\nnamespace memfathom {\n${first}\n}  // namespace memfathom\n")
  file(WRITE "${TREE}/kernels/fit/grow.cc" "#include <string>\nnamespace memfathom {\n${second}\n}  // namespace memfathom\n")
  run_check(1)
  string(FIND "${said}" "${name} has 2 definitions: fitter/rows.h:3, kernels/fit/grow.cc:3" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "the check did not find the second ${name}: ${said}")
  endif()
endfunction()

plant("struct Row { int a\; }\;" "struct Row { long b\; }\;" "memfathom::Row")
plant("class Model final : public Base<int> { int a\; }\;" "struct Model {}\;" "memfathom::Model")
plant("enum class Kind : int { kOne }\;" "enum Kind { kTwo }\;" "memfathom::Kind")
plant("template <typename T> struct Box { T value\; }\;" "struct Box {}\;" "memfathom::Box")

file(REMOVE_RECURSE "${TREE}")
file(WRITE "${TREE}/core/fine.h" "namespace memfathom {\nstruct Row;\nstruct Row { struct Part {}; };\n}\n")
file(WRITE "${TREE}/core/fine.cc" "namespace memfathom {\nnamespace {\nstruct Row {};\n}\nvoid f() { struct Row {}; }\n// struct Row {\n}\n")
file(WRITE "${TREE}/core/other.cc" "namespace memfathom::other {\nstruct Row { struct Part {}; };\nconst char* text = R\"(struct Row {)\";\n}\n")
run_check(0)
file(REMOVE_RECURSE "${TREE}")
run_check(1)  # a tree without types is a mistake of the caller
