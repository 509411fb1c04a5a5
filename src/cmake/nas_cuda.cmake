# Which nvcc, for which GPUs, and how it is told C++20: decided before LibTorch's package is loaded, which enables CUDA itself
# where it has CUDA, and tries programs.

# NAS_NVCC is the compiler where neither CMAKE_CUDA_COMPILER nor the environment's CUDACXX names one.
find_program(NAS_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NAS_NVCC AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND NOT NAS_WITH_CUDA STREQUAL "OFF")
  set(CMAKE_CUDA_COMPILER ${NAS_NVCC})
endif()
# LibTorch's package looks for a toolkit of its own accord; it must be that of the compiler.
set(nas_nvcc "${CMAKE_CUDA_COMPILER}")
if(NOT nas_nvcc)
  set(nas_nvcc "$ENV{CUDACXX}")
endif()
if(IS_ABSOLUTE "${nas_nvcc}" AND NOT CUDA_TOOLKIT_ROOT_DIR)
  get_filename_component(CUDA_TOOLKIT_ROOT_DIR ${nas_nvcc}/../.. ABSOLUTE)
endif()

# nvcc knows it since 12.0, CMake since 3.26.
if(CMAKE_VERSION VERSION_LESS 3.26)
  foreach(kind STANDARD EXTENSION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_CUDA20_${kind}_COMPILE_OPTION)
  endforeach()
endif()

# LibTorch's package ignores CMAKE_CUDA_ARCHITECTURES; left to itself it takes that of the GPU it sees, or, where it sees none,
# some that today's nvcc no longer knows.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities that the CUDA kernels are compiled for")
endif()
if(NOT TORCH_CUDA_ARCH_LIST AND NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST})
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT architectures)
    set(architectures $ENV{CUDAARCHS})
  endif()
  foreach(architecture ${architectures})
    if(architecture MATCHES "^([0-9]+)([0-9][a-z]?)(-real|-virtual|)$")
      set(capability ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
      if(NOT CMAKE_MATCH_3 STREQUAL "-real")
        string(APPEND capability "+PTX")
      endif()
      list(APPEND TORCH_CUDA_ARCH_LIST ${capability})
    endif()
  endforeach()
endif()
