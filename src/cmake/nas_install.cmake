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
  endif()
endforeach()
target_compile_features(attnas_base INTERFACE cxx_std_20)
install(TARGETS ${libraries} EXPORT attnas LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attnas NAMESPACE attnas:: FILE attnasTargets.cmake DESTINATION ${package_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/src/cmake/attnas_config.cmake.in
  ${PROJECT_BINARY_DIR}/attnasConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnasConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnasConfig.cmake ${PROJECT_BINARY_DIR}/attnasConfigVersion.cmake
  DESTINATION ${package_folder})

# Headers keep the folders by which they include each other.
function(nas_install_headers root pattern)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${root} ${root}/${pattern})
  foreach(header ${headers})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${root}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attnas/${folder})
  endforeach()
endfunction()
nas_install_headers(${PROJECT_SOURCE_DIR}/src *.hpp)
nas_install_headers(${PROJECT_SOURCE_DIR} algorithms/*.hpp)

# What the programs find there: the scripts that read runs, configurations, and the tables that these name.
set(share ${CMAKE_INSTALL_DATADIR}/attnas)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/analysis DESTINATION ${share} USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${share})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/problems/tables DESTINATION ${share}/problems FILES_MATCHING PATTERN *.table)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg)
