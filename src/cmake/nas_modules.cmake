# nas_add_module(NAME [SOURCES...]): a hand-listed folder of src/, compiled into the library that CURRENT_LIBRARY names.
# nas_add_plugins(KIND FOLDER): every .cpp of FOLDER, each registering itself; file stem = key.
#
# Both become OBJECT libraries linked directly into a shared library: objects of a STATIC library that nobody names are
# dropped by the linker, and a plug-in is named by nobody.

# The commit that is built, for the records of runs.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE NAS_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT NAS_REVISION)
  set(NAS_REVISION unknown)
endif()
configure_file(${PROJECT_SOURCE_DIR}/src/core/version.cpp.in ${PROJECT_BINARY_DIR}/generated/version.cpp)

# attnas_base links no Torch (configuration, search, store, data); attnas adds what trains models.
add_library(attnas_base SHARED)
add_library(attnas::attnas_base ALIAS attnas_base)
target_include_directories(attnas_base PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attnas>)
target_link_libraries(attnas_base PUBLIC Pagmo::pagmo nlohmann_json::nlohmann_json PRIVATE nas_flags)
set_target_properties(attnas_base PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
if(NAS_WITH_TORCH)
  add_library(attnas SHARED)
  add_library(attnas::attnas ALIAS attnas)
  target_link_libraries(attnas PUBLIC attnas_base nas_torch PRIVATE nas_flags)
  set_target_properties(attnas PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
endif()

function(nas_add_objects library target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC Pagmo::pagmo nlohmann_json::nlohmann_json PRIVATE nas_flags)
  if(library STREQUAL "attnas")
    target_link_libraries(${target} PUBLIC nas_torch)
  endif()
  target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:${target}>)
endfunction()

# nas_add_module(core LIBRARY attnas_base SOURCES error.cpp ... LINK OpenSSL::Crypto)
function(nas_add_module name)
  cmake_parse_arguments(ARG "" "LIBRARY" "SOURCES;LINK" ${ARGN})
  nas_add_objects(${ARG_LIBRARY} nas_${name} ${ARG_SOURCES})
  if(ARG_LINK)
    target_link_libraries(nas_${name} PRIVATE ${ARG_LINK})
    target_link_libraries(${ARG_LIBRARY} PRIVATE $<BUILD_INTERFACE:${ARG_LINK}>)
  endif()
  nas_precompile(nas_${name} ${ARG_LIBRARY})
endfunction()

# nas_add_plugins(algorithms LIBRARY attnas_base FOLDER ${PROJECT_SOURCE_DIR}/algorithms)
function(nas_add_plugins kind)
  cmake_parse_arguments(ARG "" "LIBRARY;FOLDER" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_FOLDER}/*.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target ${kind})
  nas_add_objects(${ARG_LIBRARY} nas_plugins_${target} ${sources})
  if(ARG_LINK)
    target_link_libraries(nas_plugins_${target} PRIVATE ${ARG_LINK})
  endif()
  nas_precompile(nas_plugins_${target} ${ARG_LIBRARY})
  set(keys "")
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    list(APPEND keys ${stem})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY NAS_PLUGIN_KINDS ${kind})
  set_property(GLOBAL PROPERTY NAS_PLUGIN_KEYS_${kind} "${keys}")
endfunction()

# nas_add_program(nas-run SOURCES main.cpp): a program in build/<preset>/bin, installed.
function(nas_add_program name)
  cmake_parse_arguments(ARG "" "LIBRARY" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARY} ${ARG_LINK} nas_flags)
  # The library registers plug-ins by being loaded, whether or not a symbol of it is called.
  target_link_options(${name} PRIVATE -Wl,--no-as-needed)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# nas_add_test(NAME LABEL unit LIBRARY attnas_base SOURCES ... [LINK ...]): a GoogleTest binary. Binaries that link no
# Torch register each case; with Torch a process costs 0.5-0.8 s, so the binary is one test.
function(nas_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;LIBRARY;TIMEOUT" "SOURCES;LINK;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARY} ${ARG_LINK} GTest::gmock GTest::gtest_main nas_flags)
  target_link_options(${name} PRIVATE -Wl,--no-as-needed)
  # Tests take longer to optimise, and to be watched for undefined behaviour, than they run.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NAS_SANITIZE MATCHES "undefined")
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  target_compile_definitions(${name} PRIVATE NAS_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data"
    NAS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" NAS_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  nas_precompile(${name} ${ARG_LIBRARY} <gmock/gmock.h> <gtest/gtest.h>)
  # The address sanitizer, too, costs more to start than most cases take.
  if(ARG_LABEL STREQUAL "unit" AND NOT NAS_SANITIZE MATCHES "address")
    gtest_discover_tests(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} DISCOVERY_TIMEOUT 60)
  else()
    add_test(NAME ${name} COMMAND ${name})
    # Whole binaries take longest, and are started first: the longest of them may take as long as TIMEOUT says.
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT})
    if(ARG_ENVIRONMENT)
      set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARG_ENVIRONMENT}")
    endif()
  endif()
endfunction()
