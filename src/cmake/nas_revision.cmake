# cmake -D SOURCE=... -D GENERATED=... -D PROJECT_VERSION=... -P nas_revision.cmake: the commit that is built, for the records of
# runs and for plug-ins. It is asked for at every build, since commits and edits change it without CMake being run; what it is
# written into changes only if it does.
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12
  OUTPUT_VARIABLE NAS_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
# `describe --dirty` would lock the index, so that a commit beside a build could fail.
execute_process(COMMAND git --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE edits ERROR_QUIET)
if(NOT NAS_REVISION)
  set(NAS_REVISION unknown)
elseif(edits)
  string(APPEND NAS_REVISION -dirty)
endif()
configure_file(${SOURCE}/src/core/version.cpp.in ${GENERATED}/version.cpp)
configure_file(${SOURCE}/src/core/plugin_stamp.cpp.in ${GENERATED}/attnas_plugin_stamp.cpp)
