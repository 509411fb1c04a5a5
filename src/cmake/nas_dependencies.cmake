# Everything that the build takes from the system; scripts/setup installs it on Debian.
find_package(Threads REQUIRED)
find_package(Boost REQUIRED COMPONENTS filesystem program_options serialization)
find_package(pagmo REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(HWY REQUIRED CONFIG)

add_library(nas_yaml INTERFACE)
target_link_libraries(nas_yaml INTERFACE yaml-cpp)

if(NAS_WITH_TORCH)
  include(nas_torch)
  # LibTorch's loops over threads are templates: compiled without OpenMP they silently use one.
  find_package(OpenMP COMPONENTS CXX)
  # TORCH_LIBRARIES without TORCH_CXX_FLAGS, and its headers as system headers: their warnings are not ours.
  add_library(nas_torch INTERFACE)
  target_include_directories(nas_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(nas_torch INTERFACE ${TORCH_LIBRARIES})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(nas_torch INTERFACE -include ${PROJECT_SOURCE_DIR}/src/cmake/torch_for_clang.h)
  endif()
  # A LibTorch with CUDA has a library for it, whose headers want those of the CUDA toolkit; its package finds both.
  if(TARGET torch_cuda)
    target_compile_definitions(nas_torch INTERFACE NAS_TORCH_CUDA)
    find_package(CUDAToolkit REQUIRED)
  endif()
endif()
