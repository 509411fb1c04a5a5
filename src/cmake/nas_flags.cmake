# Warnings and sanitizers, in one interface target that every target of ours links privately.
add_library(nas_flags INTERFACE)
target_compile_options(nas_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
  -Wold-style-cast
  # g++ 12 sees overlaps in operator+ of std::string that are not there (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # g++ 13 to 15 take a reference into an argument for one into a temporary, wherever another argument is one.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  # It calls them by other names where headers are precompiled, and so no system's headers any more.
  "$<$<AND:$<NOT:$<BOOL:${CMAKE_DISABLE_PRECOMPILE_HEADERS}>>,$<CXX_COMPILER_ID:GNU>>:-Wno-array-bounds;-Wno-stringop-overflow>"
  # It takes every file for a header where several are compiled as one.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  $<$<BOOL:${NAS_WARNINGS_AS_ERRORS}>:-Werror>)
if(NAS_SANITIZE)
  target_compile_options(nas_flags INTERFACE -fsanitize=${NAS_SANITIZE} -fno-omit-frame-pointer)
  # Eigen would align by itself where there is an address sanitizer, but pagmo's library, which has none, does not.
  target_compile_definitions(nas_flags INTERFACE EIGEN_MALLOC_ALREADY_ALIGNED=1)
  if(NAS_SANITIZE MATCHES "address.*undefined")
    # What the address sanitizer finds, too, is checked once: a quarter of the time to compile.
    target_compile_options(nas_flags INTERFACE -fno-sanitize=null,object-size)
  endif()
  # What a target does without; behind the above, since the last one counts.
  target_compile_options(nas_flags INTERFACE
    "$<$<BOOL:$<TARGET_PROPERTY:NAS_UNSANITIZED>>:-fno-sanitize=$<JOIN:$<TARGET_PROPERTY:NAS_UNSANITIZED>,$<COMMA>>>")
  target_link_options(nas_flags INTERFACE -fsanitize=${NAS_SANITIZE})
endif()
