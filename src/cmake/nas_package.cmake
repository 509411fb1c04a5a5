# cpack in a build tree: what `cmake --install` installs as a Debian package, with the dependencies of its programs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The attnas authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/spdx.cmake)
# What is built is packed; to build everything else for it, tests above all, is not its business.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
# Pages are made with Python, downloads are checked; without an OpenBLAS, LibTorch is eleven times slower.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "libopenblas0-openmp, ca-certificates, python3, python3-numpy, python3-scipy, python3-starlette, python3-uvicorn")
# For tables of the Python package; for several machines; for programs with the C++ library.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pandas, python3-distributed, python3-mpi4py, g++, cmake, libtorch-dev, libpagmo-dev, nlohmann-json3-dev, bash-completion")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
