# What `cmake --install` copies and `make package` packs.
#
# The prefix can be moved: the program finds the libraries that come along relative to itself, and no
# installed file knows a folder of the machine that built it.
#
# component     holds
# program       bin/regatta, its manual pages and completion
# libraries     those that the program needs and the system does not have
# development   the static library, headers, CMake's and pkg-config's files
# everywhere    for the tarball alone: tests and their files, and all libraries but glibc

set(private_dir ${CMAKE_INSTALL_LIBDIR}/regatta)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/regatta)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# --- the program ---------------------------------------------------------------------------------

# Libraries of these folders come with the system's packages; StarPU, and what a site has built
# itself, do not.
set(system_libraries "^/(usr/)?lib")
install(TARGETS regatta RUNTIME_DEPENDENCY_SET program_needs
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(RUNTIME_DEPENDENCY_SET program_needs POST_EXCLUDE_REGEXES ${system_libraries}
  LIBRARY DESTINATION ${private_dir} COMPONENT libraries)
if(TARGET regatta_mpi)
  install(TARGETS regatta_mpi LIBRARY DESTINATION ${private_dir} COMPONENT program)
endif()
install(CODE "set(pages_program \"$<TARGET_FILE:regatta>\")
set(pages_data \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
set(pages_manual \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")"
  COMPONENT program)
install(SCRIPT cmake/install_pages.cmake COMPONENT program)

# --- for other projects --------------------------------------------------------------------------

install(TARGETS regatta_lib EXPORT regattaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT regattaTargets NAMESPACE regatta:: DESTINATION ${package_dir})
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/regattaConfig.cmake.in regattaConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS private_dir)
write_basic_package_version_file(regattaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/regattaConfig.cmake
  ${PROJECT_BINARY_DIR}/regattaConfigVersion.cmake cmake/RegattaDependencies.cmake
  DESTINATION ${package_dir})

# The library is static, so whoever links it links all of these.
set(pc_libraries "-L\${private} -Wl,-rpath,\${private}")
set(private_library_dirs "")
# Adds a library to pc_libraries: by its name, or as the file in the private folder if it comes along.
macro(pc_library path)
  get_filename_component(real ${path} REALPATH)
  if(real MATCHES ${system_libraries})
    get_filename_component(library ${path} NAME)
    string(REGEX REPLACE "^lib(.*)\\.(so|a)$" "-l\\1" library ${library})
    string(APPEND pc_libraries " ${library}")
  else()
    get_filename_component(library ${real} NAME)
    string(APPEND pc_libraries " -l:${library}")
    get_filename_component(library_dir ${path} DIRECTORY)
    list(APPEND private_library_dirs ${library_dir})
  endif()
endmacro()
list(GET REGATTA_STARPU_PC_LINK_LIBRARIES 0 starpu)
pc_library(${starpu})
foreach(name IN ITEMS dnnl hwloc jpeg png sqlite simgrid onnx protobuf clp coinutils gmpxx gmp)
  pc_library(${REGATTA_${name}_LIBRARY})
endforeach()
string(APPEND pc_libraries " -lcrypto -lz -fopenmp -pthread")
if(REGATTA_HAVE_CUDA)
  get_filename_component(cudart ${REGATTA_cudart_LIBRARY} DIRECTORY)
  string(APPEND pc_libraries " -L${cudart} -lcudart_static -lrt -ldl")
endif()
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/regatta.pc.in regatta.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/regatta.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# --- tests and libraries for a machine that has only glibc ---------------------------------------

if(REGATTA_TESTS)
  set(programs regatta_tests)
  if(REGATTA_HAVE_CUDA)
    list(APPEND programs regatta_cuda_bench)
  endif()
  install(TARGETS ${programs} RUNTIME_DEPENDENCY_SET tests_need
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT everywhere EXCLUDE_FROM_ALL)
  install(RUNTIME_DEPENDENCY_SET tests_need
    PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\\.so"  # glibc's
    LIBRARY DESTINATION ${private_dir} COMPONENT everywhere EXCLUDE_FROM_ALL)
  foreach(folder IN ITEMS platforms schemas tests/parity/data tests/plan/data tests/trace/data tests/fuzz/cases)
    get_filename_component(parent ${folder} DIRECTORY)
    install(DIRECTORY ${folder} DESTINATION ${packed_test_files}/${parent}
      COMPONENT everywhere EXCLUDE_FROM_ALL)
  endforeach()
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# --- packages ------------------------------------------------------------------------------------

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "the authors of Regatta")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${private_library_dirs})
# Which components go into which package.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_parts.cmake)
include(CPack)
