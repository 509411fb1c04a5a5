# Manual pages, which help2man makes of what each program's --help says; without it there are none.
find_program(HELP2MAN help2man)
if(HELP2MAN)
  foreach(name ${programs} attnas-judge)
    string(REGEX REPLACE "^attnas-" "attnas " command ${name})  # one of its commands
    string(REGEX REPLACE " .*" "" program ${command})
    string(TOUPPER ${name} title)
    set(page ${PROJECT_BINARY_DIR}/man/${name}.1)
    set(file ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${command})
    if(program IN_LIST python_programs)
      set(needs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program})
    else()
      set(needs ${program})
    endif()
    add_custom_command(OUTPUT ${page} DEPENDS ${needs} VERBATIM COMMAND sh -c
      "mkdir -p man && '${HELP2MAN}' --no-info --name=\"$(${file} --help | sed -n '1s/^[^:]*: //p')\" \
--manual=attnas --source='attnas ${PROJECT_VERSION}' --version-string='${PROJECT_VERSION}' --output='${page}' \
'${file}' && sed -i '1,4s/^\\.TH ATTNAS /.TH ${title} /' '${page}'" WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    list(APPEND pages ${page})
  endforeach()
  add_custom_target(man ALL DEPENDS ${pages})
  # Not there where only some targets were built.
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
endif()
