# The CUDA side except its kernels: what the module and the tests with doubles both compile.
get_filename_component(cuda_folder "${CMAKE_CURRENT_LIST_DIR}" ABSOLUTE)
set(MEMFATHOM_CUDA_SOURCES
  attention.cc convolution.cc cuda_device.cc driver.cc environment.cc fft.cc gemm.cc gemm_layout.cc handles.cc module.cc segments.cc
  status.cc cudnn/attention_graph.cc cudnn/descriptor.cc cudnn/execute.cc cudnn/graph.cc cudnn/graph_builder.cc
  cudnn/plan.cc)
set(MEMFATHOM_CUDA_KERNELS attention.cu elementwise.cu gemm.cu planes.cu rows.cu)
list(TRANSFORM MEMFATHOM_CUDA_SOURCES PREPEND "${cuda_folder}/")
list(TRANSFORM MEMFATHOM_CUDA_KERNELS PREPEND "${cuda_folder}/")
set_source_files_properties("${cuda_folder}/environment.cc" PROPERTIES
  COMPILE_DEFINITIONS MEMFATHOM_VERSION="${PROJECT_VERSION}")
