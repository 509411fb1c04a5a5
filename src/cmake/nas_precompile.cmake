# nas_precompile(TARGET LIBRARY [HEADER...]): TARGET takes the headers that most of its compilation goes into, those behind
# LIBRARY and further ones, from a precompiled one. The first target with the same flags makes it, the others take it from there.
# CMAKE_DISABLE_PRECOMPILE_HEADERS=ON does without.
function(nas_precompile target library)
  set(headers <algorithm> <filesystem> <fstream> <functional> <iostream> <map> <optional> <set> <string> <vector>
    <nlohmann/json.hpp> <pagmo/algorithm.hpp> <pagmo/population.hpp> <pagmo/problem.hpp> ${ARGN})
  if(library STREQUAL "attnas")
    list(APPEND headers <torch/types.h> <torch/autograd.h> <ATen/Parallel.h>)
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(linked ${target} LINK_LIBRARIES)
  set(kind "NAS_PRECOMPILED_${type}_${library}_${ARGN}")
  if("${linked}" MATCHES "OpenMP::OpenMP_CXX")
    string(APPEND kind _openmp)
  endif()
  get_property(first GLOBAL PROPERTY "${kind}")
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY "${kind}" ${target})
  endif()
endfunction()
