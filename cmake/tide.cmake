# Build helpers: one call makes a floor of the house, one a test.

add_library(tide_flags INTERFACE)
target_include_directories(tide_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(tide_flags INTERFACE _GNU_SOURCE TIDE_RECORD_NO_INLINE)
target_compile_options(tide_flags INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef -Wformat=2 -Wwrite-strings -Wvla -fno-common
  -ffp-contract=off "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(TIDE_WERROR)
  target_compile_options(tide_flags INTERFACE -Werror)
endif()
# Assertions (core/base/assert.h) are on in Debug and under every sanitizer.
if(TIDE_SANITIZE)
  target_compile_definitions(tide_flags INTERFACE TIDE_ASSERT_LEVEL=1)
else()
  target_compile_definitions(tide_flags INTERFACE "$<$<CONFIG:Debug>:TIDE_ASSERT_LEVEL=1>")
endif()
if(TIDE_SANITIZE)
  # Three checks are left out that take a third of the time to compile, because AddressSanitizer stops at the access itself:
  # past an object, through a null pointer, or through one that has wrapped round.
  target_compile_options(tide_flags INTERFACE -fsanitize=${TIDE_SANITIZE} -fno-sanitize=object-size,null,pointer-overflow
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tide_flags INTERFACE -fsanitize=${TIDE_SANITIZE})
endif()

# A frame of more than half of the usual stack (8 MiB) crashes in a build without optimisation: an error in every build.
# Sanitizers make frames larger than they are.
if(NOT TIDE_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tide_flags INTERFACE -Werror=frame-larger-than=4194304)
endif()

# Hardening of Release builds: checked copies (they need optimisation), a guard word below each array on the stack, code
# at an address that changes with each start, and a table of foreign functions that is filled at once and then closed.
# Sanitizers check all this and more themselves, and do not go with the first.
if(NOT TIDE_SANITIZE)
  set(hard "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
  target_compile_options(tide_flags INTERFACE
    "$<${hard}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-fstack-protector-strong>")
  target_link_options(tide_flags INTERFACE "$<${hard}:LINKER:-z,relro,-z,now>")
endif()

# tide_floor(NAME [DIR dir] [SHOWS] [DEPS …]): every .c file (and .cpp, where a library leaves no choice) of the folder becomes the static library tide_NAME. A floor knows
# only what DEPS names; tests/house checks the includes. A new file needs no entry here. SHOWS: a floor that shows what
# others have computed. Its own work is short: under sanitizers, to optimise it takes longer than the tests then gain.
function(tide_floor name)
  cmake_parse_arguments(ARG "SHOWS" "DIR" "DEPS" ${ARGN})
  if(NOT ARG_DIR)
    set(ARG_DIR "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${ARG_DIR}/*.c" "${ARG_DIR}/*.cpp")
  if(NOT sources)
    add_library(tide_${name} INTERFACE)
    target_link_libraries(tide_${name} INTERFACE tide_flags ${ARG_DEPS})
    return()
  endif()
  add_library(tide_${name} STATIC ${sources})
  target_link_libraries(tide_${name} PUBLIC tide_flags ${ARG_DEPS})
  if(ARG_SHOWS AND TIDE_SANITIZE)
    target_compile_options(tide_${name} PRIVATE -O0)
  endif()
endfunction()

# tide_embed(FLOOR SYMBOL PATTERN [WRAP 1]): the files that match, in order of their names, as the C string SYMBOL of the
# floor (cmake/embed.cmake).
function(tide_embed floor symbol pattern)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${pattern}")
  list(JOIN files "," list)
  set(out "${PROJECT_BINARY_DIR}/${symbol}.c")
  add_custom_command(OUTPUT "${out}" DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -DOUT=${out} -DNAME=${symbol} -DFILES=${list} "-D${ARGN}"
      -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
  target_sources(tide_${floor} PRIVATE "${out}")
endfunction()

# tide_tests(FLOOR… [EXCEPT name…] [SOURCES file…] [RELEASE name…]): every test_NAME.c of the folder, but those of EXCEPT,
# as ctest NAME with the label unit. They are one program, test_FOLDER, that runs the one that is named (each file's main
# is test_NAME_main there), each in a process of its own; SOURCES are linked in beside them. A new file needs no entry.
# Where TIDE_UNIT_TESTS is `release`, only what is named after RELEASE is built (ALL: everything): what optimised code or
# a process without sanitizers makes different.
function(tide_tests)
  cmake_parse_arguments(ARG "" "" "EXCEPT;SOURCES;RELEASE" ${ARGN})
  file(GLOB files RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS test_*.c)
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(sources ${ARG_SOURCES})
  foreach(file IN LISTS files)
    string(REGEX REPLACE "^test_(.*)\\.c$" "\\1" name "${file}")
    if(name IN_LIST ARG_EXCEPT)
      continue()
    elseif(TIDE_UNIT_TESTS STREQUAL "release" AND NOT name IN_LIST ARG_RELEASE AND NOT "ALL" IN_LIST ARG_RELEASE)
      continue()
    endif()
    list(APPEND names ${name})
    list(APPEND sources ${file})
    set_source_files_properties(${file} PROPERTIES COMPILE_DEFINITIONS "main=test_${name}_main"
      COMPILE_OPTIONS -Wno-missing-prototypes)
    file(STRINGS ${file} takes_none REGEX "^int main\\(void\\)")
    if(takes_none)
      string(APPEND declared "int test_${name}_main(void);\n")
      string(APPEND called "    if (strcmp(argv[1], \"${name}\") == 0) return test_${name}_main();\n")
    else()
      string(APPEND declared "int test_${name}_main(int argc, char **argv);\n")
      string(APPEND called
        "    if (strcmp(argv[1], \"${name}\") == 0) return test_${name}_main(argc - 1, argv + 1);\n")
    endif()
  endforeach()
  if(NOT names)
    return()
  endif()
  file(CONFIGURE OUTPUT main_of_${folder}.c @ONLY CONTENT [[
// Generated by cmake/tide.cmake: runs the test that is named.
#include <stdio.h>
#include <string.h>

@declared@
int main(int argc, char **argv) {
    if (argc < 2) return fputs("usage: test_@folder@ NAME [ARGUMENT...]\n", stderr), 2;
@called@    fprintf(stderr, "test_@folder@ has no test '%s'\n", argv[1]);
    return 2;
}
]])
  add_executable(test_${folder} ${sources} "${CMAKE_CURRENT_BINARY_DIR}/main_of_${folder}.c")
  target_link_libraries(test_${folder} PRIVATE ${ARG_UNPARSED_ARGUMENTS} tide_testing PkgConfig::CMOCKA)
  add_dependencies(unit test_${folder})
  foreach(name IN LISTS names)
    tide_add_unit_test(${name} $<TARGET_FILE:test_${folder}> ${name})
  endforeach()
endfunction()

# tide_test(NAME FLOOR…): test_NAME.c as a program of its own, where it is linked in a way of its own or started again by
# itself.
function(tide_test name)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE ${ARGN} tide_testing PkgConfig::CMOCKA)
  add_dependencies(unit test_${name})
  tide_add_unit_test(${name} $<TARGET_FILE:test_${name}>)
endfunction()

# tide_add_unit_test(NAME COMMAND…): TIDE_TEST_LAUNCHER stands before the command (valgrind and its options). A folder
# whose tests run operators sets TIDE_RUNS_KERNELS, for options of their own: the code that oneDNN generates computes
# lanes past the end of a tensor from whatever lies there and does not store them, which valgrind takes for a use of
# undefined values.
function(tide_add_unit_test name)
  set(launcher ${TIDE_TEST_LAUNCHER})
  if(TIDE_RUNS_KERNELS)
    list(APPEND launcher ${TIDE_TEST_LAUNCHER_KERNELS})
  endif()
  add_test(NAME ${name} COMMAND ${launcher} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT ${TIDE_TEST_TIMEOUT}
    ENVIRONMENT "TIDE_SHARED_DIR=${TIDE_SHARED_DIR};TIDE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  if(name IN_LIST TIDE_LONG_TESTS)
    set_tests_properties(${name} PROPERTIES COST 10)
  endif()
endfunction()
