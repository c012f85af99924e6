# What `make deb` packs (cpack -G DEB in build/deb): the program, the libraries that other programs run with, what they are
# built with, and, of each, debug symbols in a package of its own.
#
#     tidemark            the program, its plug-ins for CUDA, man pages, completions
#     tidemark-mpi        the plug-in of `sweep` for several processes, which brings Open MPI along
#     libtidemark0        libtidemark*.so.N        (0: TIDE_ABI)
#     libtidemark-dev     headers, libtidemark.so, libtidemark.a, pkg-config and CMake files
#     *-dbgsym            what dpkg calls so
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tidemark)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "the tidemark project <tidemark@localhost.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "memory plans and allocator traces of tensor programs")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program runtime development)
if(TARGET tidemark_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tidemark)
# oneDNN is opened when a kernel wants it (core/ops/dnnl_guard.h): no table of the program says so. Debian calls the
# package of libdnnl.so.2 libdnnl2.
string(REGEX REPLACE "\\.so\\." "" TIDE_DNNL_PACKAGE "${TIDE_DNNL_SONAME}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${TIDE_DNNL_PACKAGE}")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Plans the memory of ONNX models, runs them under instrumented allocators,
 and shows where memory went: in the terminal, as a page, and as a gate in CI.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "tidemark-mpi")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME tidemark-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "tidemark (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MPI_DESCRIPTION "With it `mpirun tidemark sweep` shares its cases among processes.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME "libtidemark${TIDE_ABI}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib")
# The loader's cache is renewed, and packages of programs that link the libraries find out what to depend on (shlibs).
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_BINARY_DIR}/triggers;${CMAKE_CURRENT_BINARY_DIR}/shlibs")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/shlibs" "")
foreach(part tidemark tidemark-record tidemark-plan tidemark-trace)
  file(APPEND "${CMAKE_CURRENT_BINARY_DIR}/shlibs"
    "lib${part} ${TIDE_ABI} libtidemark${TIDE_ABI} (>= ${PROJECT_VERSION})\n")
endforeach()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The libraries of programs that record their memory, plan it or read traces.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtidemark-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtidemark${TIDE_ABI} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libsqlite3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DEBUGINFO_PACKAGE OFF)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and libraries to build such programs with.")
# Of what all this consists (scripts/sbom.py, made by make deb).
install(FILES "${PROJECT_BINARY_DIR}/tidemark.spdx.json" DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)
include(CPack)
