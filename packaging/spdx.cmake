# cpack runs this before it packs: what the package is made of, by what its programs and libraries load.
execute_process(COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/spdx.py ${CPACK_PACKAGE_NAME} ${CPACK_PACKAGE_VERSION}
  ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}/share/attnas/attnas.spdx.json
  --linked ${CPACK_TEMPORARY_INSTALL_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
