# The wheels memfathom-cuda12 and -cuda13 (scripts/build-wheel --cuda): the CUDA module and cuDNN's planner lie in
# site-packages/memfathom_cuda and find NVIDIA's libraries in the packages beside it, as PyTorch's do.
if(NOT MEMFATHOM_CUDA_WHEEL)
  return()
endif()
set(folders cudnn)
if(CUDAToolkit_VERSION_MAJOR LESS 13)
  list(APPEND folders cublas cufft cuda_runtime cuda_nvrtc)
else()
  list(APPEND folders "cu${CUDAToolkit_VERSION_MAJOR}")
endif()
list(TRANSFORM folders REPLACE "(.+)" "$ORIGIN/../nvidia/\\1/lib")
set_target_properties(memfathom_cuda memfathom_cudnn_planner PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}" INSTALL_RPATH_USE_LINK_PATH OFF)
target_link_options(memfathom_cuda PRIVATE -s -Wl,--gc-sections)
target_link_options(memfathom_cudnn_planner PRIVATE -s -Wl,--gc-sections)
