# cmake --install: programs, libraries, headers with their folders, configurations, and the CMake package `attnas`.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attnas)

set(libraries attnas_base)
if(NAS_WITH_TORCH)
  list(APPEND libraries attnas nas_torch)
endif()
foreach(library attnas_base attnas)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
    # Plug-ins register when their library is loaded: a linker that drops libraries nobody calls would drop them, too.
    target_link_options(${library} INTERFACE $<INSTALL_INTERFACE:-Wl,--no-as-needed>)
    target_compile_features(${library} INTERFACE cxx_std_20)
  endif()
endforeach()
install(TARGETS ${libraries} EXPORT attnas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attnas NAMESPACE attnas:: FILE attnasTargets.cmake DESTINATION ${package_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/src/cmake/attnas_config.cmake.in
  ${PROJECT_BINARY_DIR}/attnasConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnasConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnasConfig.cmake ${PROJECT_BINARY_DIR}/attnasConfigVersion.cmake
  ${PROJECT_BINARY_DIR}/generated/attnas_plugin_stamp.cpp DESTINATION ${package_folder})

# What a program outside may include, and all that these headers include in turn: nothing else is installed, so nothing else is
# promised, and nothing else is exported. They keep the folders by which they include each other.
set(public
  study/study.hpp study/ask_and_tell.hpp study/worker.hpp study/comparison_study.hpp core/stop.hpp  # the front door
  report/digest.hpp report/files.hpp table/table.hpp                                  # what comes out of it
  search/algorithm.hpp search/conversation.hpp search/variation.hpp search/problem.hpp search/synthetic.hpp   # what plug-ins are written with
  search/objective.hpp genotype/component.hpp genotype/costs.hpp genotype/mechanism_name.hpp genotype/slots.hpp
  genotype/architecture_name.hpp
  data/corpus.hpp core/hash.hpp)
if(NAS_WITH_TORCH)
  list(APPEND public nn/attention.hpp nn/feed_forward.hpp nn/mixers.hpp nn/norm.hpp nn/parts/state_options.hpp nn/parts/head_maps.hpp
    instruments/forward_pass.hpp training/task.hpp)
endif()
file(GLOB algorithms RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/algorithms/*.hpp)  # pagmo algorithms, for any program
list(APPEND public ${algorithms})
while(public)
  list(POP_FRONT public header)
  if(header IN_LIST installed)
    continue()
  endif()
  list(APPEND installed ${header})
  set(file ${PROJECT_SOURCE_DIR}/src/${header})
  if(NOT EXISTS ${file})
    set(file ${PROJECT_SOURCE_DIR}/${header})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attnas/${folder})
  file(STRINGS ${file} includes REGEX "^#include \"")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" include "${include}")
    list(APPEND public ${include})
  endforeach()
endwhile()

# For the check that exactly these export what they declare; programs.hpp is the programs' own.
list(TRANSFORM installed APPEND "\n" OUTPUT_VARIABLE lines)
file(WRITE ${PROJECT_BINARY_DIR}/generated/exported_headers ${lines} cli/programs.hpp\n)

# What the programs find there: the scripts that read runs, configurations, and the tables that these name. The scripts
# are commands of the Python package.
set(share ${CMAKE_INSTALL_DATADIR}/attnas)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/analysis DESTINATION ${share} USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python DESTINATION ${share}
  PATTERN __pycache__ EXCLUDE PATTERN build EXCLUDE PATTERN *.egg-info EXCLUDE)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/workers DESTINATION ${share}/scripts)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/slurm/manager ${PROJECT_SOURCE_DIR}/scripts/slurm/workers
  DESTINATION ${share}/scripts/slurm)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${share})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${share})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/problems/tables DESTINATION ${share}/problems FILES_MATCHING PATTERN *.table)
get_property(python_programs GLOBAL PROPERTY NAS_PYTHON_PROGRAMS)
foreach(program attnas nas-run nas-train nas-compare nas-data nas-export nas-model nas-analyse nas-convert nas-watch nas-work)
  if(TARGET ${program} OR program IN_LIST python_programs)
    list(APPEND programs ${program})
    install(FILES ${PROJECT_SOURCE_DIR}/src/cli/completion.bash
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
  endif()
endforeach()
include(nas_man)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg)
