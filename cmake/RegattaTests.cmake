# Tests, examples and kernel benchmarks.

# Where a package keeps the files that its tests read.
set(packed_test_files ${CMAKE_INSTALL_DATADIR}/regatta/tests)

# Workers of tests that run side by side must not all sit on core 0, and StarPU keeps its own files
# in the build folder, not in the home folder.
set(test_environment STARPU_WORKERS_NOBIND=1 STARPU_SILENT=1
    STARPU_HOME=${PROJECT_BINARY_DIR}/starpu-home REGATTA_PROFILES=${PROJECT_BINARY_DIR}/profiles)
if(REGATTA_SANITIZE)
  set(suppressions ${PROJECT_SOURCE_DIR}/tests/sanitizers)
  # hwloc's plug-ins leak, and are unloaded before a suppression could name them.
  list(APPEND test_environment HWLOC_PLUGINS_PATH=/none
    LSAN_OPTIONS=suppressions=${suppressions}/leaks.supp:print_suppressions=0
    TSAN_OPTIONS=suppressions=${suppressions}/threads.supp:history_size=4
    UBSAN_OPTIONS=print_stacktrace=1
    # So do Open MPI's: ranks, to which mpirun hands this variable, are not searched for leaks.
    OMPI_MCA_mca_base_env_list=ASAN_OPTIONS=detect_leaks=0)
endif()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} tests/*.cpp)
list(FILTER test_sources EXCLUDE REGEX "^tests/install/")
if(test_sources)
  add_executable(regatta_tests ${test_sources})
  target_link_libraries(regatta_tests PRIVATE
    regatta_app regatta_internal GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(regatta_tests PRIVATE tests)
  # The less these are optimized, the less time they take to compile: kernels are not here.
  if(REGATTA_SANITIZE)
    target_compile_options(regatta_tests PRIVATE -O0)
  else()
    target_compile_options(regatta_tests PRIVATE -O1)
  endif()
  target_precompile_headers(regatta_tests PRIVATE ${common_headers} <gmock/gmock.h> <gtest/gtest.h>)
  # Tests read fixtures and may look at the sources. One file alone is compiled with this folder's
  # name, so that clones share the objects of all others.
  set_source_files_properties(tests/support/places.cpp PROPERTIES COMPILE_DEFINITIONS
    "REGATTA_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";REGATTA_PACKED_FILES=\"${packed_test_files}\"")
  add_dependencies(regatta_tests regatta)
  include(GoogleTest)
  gtest_discover_tests(regatta_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_LIST regatta_test_names PROPERTIES TIMEOUT 600)
  # gtest_discover_tests cannot pass on more than one variable; ctest reads this file after it.
  file(WRITE ${PROJECT_BINARY_DIR}/test_environment.cmake
    "set_tests_properties(\${regatta_test_names} PROPERTIES ENVIRONMENT \"${test_environment}\")\n")
  set_property(DIRECTORY APPEND PROPERTY
    TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/test_environment.cmake)
endif()

# Reports are opened in a real browser, where there is one.
find_program(REGATTA_CHROMIUM chromium)
mark_as_advanced(REGATTA_CHROMIUM)
if(REGATTA_PAGE AND REGATTA_CHROMIUM AND TARGET regatta_tests AND NOT REGATTA_SANITIZE)
  add_test(NAME report.chromium COMMAND ${REGATTA_NODE}
    ${PROJECT_SOURCE_DIR}/tests/report/chromium_test.mjs ${REGATTA_PAGE_PACKAGES}
    $<TARGET_FILE:regatta_tests> $<TARGET_FILE:regatta>)
  set_tests_properties(report.chromium PROPERTIES TIMEOUT 300
    ENVIRONMENT "${test_environment};CHROMIUM=${REGATTA_CHROMIUM}")
endif()

file(GLOB example_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} examples/*.cpp)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  # Only what find_package(regatta) gives, so that examples stay honest.
  target_link_libraries(${name} PRIVATE regatta::regatta)
  add_test(NAME examples.${name} COMMAND ${name})
  set_tests_properties(examples.${name} PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
endforeach()

if(EXISTS ${PROJECT_SOURCE_DIR}/examples/example-mnist.cpp AND NOT REGATTA_SANITIZE)
  add_test(NAME install.consumer COMMAND ${CMAKE_COMMAND}
    -D build=${PROJECT_BINARY_DIR} -D source=${PROJECT_SOURCE_DIR} -D config=$<CONFIG>
    -D cache=${REGATTA_STARPU_FALLBACK}
    -D compiler=${CMAKE_CXX_COMPILER} -D "prefixes=${CMAKE_PREFIX_PATH}"
    -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
  set_tests_properties(install.consumer PROPERTIES TIMEOUT 600 ENVIRONMENT "${test_environment}")
endif()

# How near the GPU's kernels come to its limits; run by hand where a GPU is.
if(REGATTA_HAVE_CUDA)
  add_executable(regatta_cuda_bench bench/cuda/kernels.cpp bench/cuda/step.cpp)
  target_include_directories(regatta_cuda_bench PRIVATE bench)
  target_link_libraries(regatta_cuda_bench PRIVATE regatta_internal regatta_lib)
endif()

# Run by hand, but compiled with the tests, so that no change of an interface breaks them unseen.
#
# Images a second from JPEG files to samples; scripts/bench-decode runs it.
add_executable(regatta_decode_bench bench/decode/decode.cpp)
target_link_libraries(regatta_decode_bench PRIVATE regatta_internal regatta_lib)
# The same by number of loaders; scripts/bench-loaders runs it.
add_executable(regatta_loaders_bench bench/decode/loaders.cpp)
target_link_libraries(regatta_loaders_bench PRIVATE regatta_internal regatta_lib)

# On one core: batch norm beside plain streams, convolutions by two algorithms, and dense layers in fp32
# and bf16 (docs/cpu.md); sparse convolutions beside dense ones (docs/tickets.md).
find_package(benchmark QUIET)
if(TARGET benchmark::benchmark)
  add_executable(regatta_cpu_bench bench/cpu/batch_norm.cpp bench/cpu/convolution.cpp
                 bench/cpu/dense.cpp bench/cpu/sparse_convolution.cpp)
  target_link_libraries(regatta_cpu_bench PRIVATE regatta_internal regatta_lib benchmark::benchmark)
endif()
