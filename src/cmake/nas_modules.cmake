include(nas_tests)

# nas_add_module(NAME [SOURCES...]): a hand-listed folder of src/, compiled into the library that LIBRARY names.
# nas_add_plugins(KIND FOLDER): every .cpp of FOLDER, each registering itself; file stem = key.
#
# Both become OBJECT libraries linked directly into shared libraries: objects of a STATIC library that nobody names are
# dropped by the linker, and a plug-in is named by nobody.

# The commit that is built: nas_revision is built before what its files are compiled into.
set(write_revision ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D GENERATED=${PROJECT_BINARY_DIR}/generated
  -D PROJECT_VERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_DIR}/nas_revision.cmake)
execute_process(COMMAND ${write_revision} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(nas_revision COMMAND ${write_revision} VERBATIM
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/version.cpp ${PROJECT_BINARY_DIR}/generated/attnas_plugin_stamp.cpp)

# attnas_base links no Torch (configuration, search, store, data); attnas has all of that, and what trains models. A process
# loads one of them: each has registries of its own. They export what public headers declare (core/visibility.hpp), so that
# tests and benchmarks link what they are made of: LIBRARY_parts, an archive of the modules, and the plug-ins.
function(nas_add_library library)
  add_library(${library} SHARED)
  add_library(attnas::${library} ALIAS ${library})
  set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  add_library(${library}_parts STATIC EXCLUDE_FROM_ALL)
  foreach(target ${library} ${library}_parts)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attnas>)
    target_link_libraries(${target} PUBLIC Pagmo::pagmo nlohmann_json::nlohmann_json ${ARGN} PRIVATE nas_flags)
  endforeach()
endfunction()
nas_add_library(attnas_base)
if(NAS_WITH_TORCH)
  nas_add_library(attnas nas_torch)
  target_link_libraries(attnas_parts PUBLIC attnas_base_parts)
  # PyPI's LibTorch exports parts of a C++ library that was built into it: those of 2.11 end a process in remove_all(). What is
  # needed first is looked up first.
  target_link_options(attnas PUBLIC "LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state")
endif()

# Links target with the libraries that are made of a target of LIBRARY.
function(nas_link_libraries library)
  set(libraries ${library})
  if(NAS_WITH_TORCH)
    list(APPEND libraries attnas)
    list(REMOVE_DUPLICATES libraries)
  endif()
  foreach(name ${libraries})
    foreach(linked ${ARGN})
      target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${linked}>)
    endforeach()
  endforeach()
endfunction()

# nas_add_objects(attnas_base TARGET SOURCE...): compiled as what the library is made of, but in no library.
function(nas_add_objects library target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC Pagmo::pagmo nlohmann_json::nlohmann_json PRIVATE nas_flags)
  if(library STREQUAL "attnas")
    target_link_libraries(${target} PUBLIC nas_torch)
  endif()
endfunction()

# nas_add_module(core LIBRARY attnas_base SOURCES error.cpp ... APART ... LINK OpenSSL::Crypto)
# Most of a compilation goes into templates of headers, so that several files are compiled as one (CMAKE_UNITY_BUILD). APART are
# those that are not: in them a name without linkage means something else than in another file of the module.
function(nas_add_module name)
  cmake_parse_arguments(ARG "" "LIBRARY" "SOURCES;APART;LINK" ${ARGN})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  nas_add_objects(${ARG_LIBRARY} nas_${name} ${ARG_SOURCES} ${ARG_APART})
  nas_link_libraries(${ARG_LIBRARY} nas_${name})
  if(ARG_LINK)
    target_link_libraries(nas_${name} PRIVATE ${ARG_LINK})
    nas_link_libraries(${ARG_LIBRARY} ${ARG_LINK})
  endif()
  target_link_libraries(${ARG_LIBRARY}_parts PRIVATE nas_${name} ${ARG_LINK})
  nas_precompile(nas_${name} ${ARG_LIBRARY})
endfunction()

# nas_add_plugins(algorithms LIBRARY attnas_base FOLDER ${PROJECT_SOURCE_DIR}/algorithms)
# CLASSES: each file is a class, so that several can be compiled as one; others have functions of the same name.
function(nas_add_plugins kind)
  cmake_parse_arguments(ARG "CLASSES" "LIBRARY;FOLDER" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_FOLDER}/*.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target ${kind})
  nas_add_objects(${ARG_LIBRARY} nas_plugins_${target} ${sources})
  nas_link_libraries(${ARG_LIBRARY} nas_plugins_${target})
  if(ARG_LINK)
    target_link_libraries(nas_plugins_${target} PRIVATE ${ARG_LINK})
  endif()
  if(NOT ARG_CLASSES)
    set_target_properties(nas_plugins_${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  nas_precompile(nas_plugins_${target} ${ARG_LIBRARY})
  set_property(GLOBAL APPEND PROPERTY NAS_PLUGINS_${ARG_LIBRARY} nas_plugins_${target})
  set(keys "")
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    list(APPEND keys ${stem})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY NAS_PLUGIN_KINDS ${kind})
  set_property(GLOBAL PROPERTY NAS_PLUGIN_KEYS_${kind} "${keys}")
endfunction()

# nas_add_program(nas-run LIBRARY attnas): a program in build/<preset>/bin, installed; src/cli/nas_run.cpp in the library is
# what it does.
function(nas_add_program name)
  cmake_parse_arguments(ARG "" "LIBRARY" "" ${ARGN})
  string(REPLACE "-" "_" program ${name})
  set(main ${PROJECT_BINARY_DIR}/generated/${program}.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/src/cli/main.cpp.in ${main} @ONLY)
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARY} nas_flags)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# nas_add_python_program(nas-watch attnas.watch): a program in build/<preset>/bin, installed, that is a module of the Python package.
function(nas_add_python_program name module)
  set(NAS_PROGRAM_PYTHON ${NAS_ANALYSIS_PYTHON})
  if(NOT NAS_PROGRAM_PYTHON)
    set(NAS_PROGRAM_PYTHON python3)
  endif()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  configure_file(${PROJECT_SOURCE_DIR}/src/cli/python_program.in ${program} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${program} DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_property(GLOBAL APPEND PROPERTY NAS_PYTHON_PROGRAMS ${name})
endfunction()

# nas_link_parts(TARGET attnas_base [LIBRARY...]): what the library is made of, and all plug-ins; other libraries come before.
# Where everything is visible, it is the library itself; for the thread sanitizer what searches are made of, which start the threads.
function(nas_link_parts target library)
  if(NAS_SANITIZE STREQUAL "thread" AND library STREQUAL "attnas_base")
    get_target_property(modules attnas_base_parts LINK_LIBRARIES)
    list(REMOVE_ITEM modules nas_cli nas_cuda nas_kernels nas_report nas_study)
    get_property(plugins GLOBAL PROPERTY NAS_PLUGINS_attnas_base)
    target_link_libraries(${target} PRIVATE ${ARGN} ${modules} ${plugins})
    return()
  endif()
  if(NAS_SANITIZE)
    target_link_libraries(${target} PRIVATE ${ARGN} ${library})
    return()
  endif()
  set(plugins "")
  foreach(of attnas_base ${library})
    get_property(own GLOBAL PROPERTY NAS_PLUGINS_${of})
    list(APPEND plugins ${own})
  endforeach()
  list(REMOVE_DUPLICATES plugins)
  target_link_libraries(${target} PRIVATE ${ARGN} ${plugins} ${library}_parts)
endfunction()

# nas_add_test(NAME LABEL unit LIBRARY attnas_base SOURCES FILE_test.cpp... [LINK ...]): a GoogleTest program of one or more files.
function(nas_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;LIBRARY;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # each file has functions of its own by the same names
  nas_link_parts(${name} ${ARG_LIBRARY} ${ARG_LINK})
  target_link_libraries(${name} PRIVATE nas_test_places GTest::gmock GTest::gtest_main nas_flags)
  nas_compile_as_test(${name})
  nas_precompile(${name} ${ARG_LIBRARY} <gmock/gmock.h> <gtest/gtest.h>)
  list(LENGTH ARG_SOURCES count)
  if(count EQUAL 1)
    nas_add_case(${name} ${name} ${ARG_LABEL} ${ARG_TIMEOUT})
  else()
    nas_add_tests_of(${name} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SOURCES ${ARG_SOURCES})
  endif()
endfunction()

# nas_add_tests_by_room(PREFIX LABEL unit LIBRARY attnas_base SOURCES ... [APART FILE...] [LINK ...] [TIMEOUT ...]): one program for
# the files whose first header is of the same folder of src/; those that are APART have one each.
function(nas_add_tests_by_room prefix)
  cmake_parse_arguments(ARG "" "LABEL;LIBRARY;TIMEOUT" "SOURCES;APART;LINK" ${ARGN})
  set(common LABEL ${ARG_LABEL} LIBRARY ${ARG_LIBRARY} TIMEOUT "${ARG_TIMEOUT}")
  set(rooms "")
  set(apart "")
  foreach(source ${ARG_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    if(name IN_LIST ARG_APART)
      list(APPEND apart ${source})
      continue()
    endif()
    file(STRINGS ${source} include REGEX "^#include \"[a-z_]+/" LIMIT_COUNT 1)
    string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" room "${include}")
    list(APPEND rooms ${room})
    list(APPEND sources_${room} ${source})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room ${rooms})
    nas_add_test(${prefix}_${room} ${common} SOURCES ${sources_${room}} LINK ${ARG_LINK})
  endforeach()
  # Behind the others, which have the first one's precompiled headers: these may be compiled otherwise.
  foreach(source ${apart})
    get_filename_component(name ${source} NAME_WE)
    nas_add_test(${name} ${common} SOURCES ${source} LINK ${ARG_LINK})
  endforeach()
endfunction()
