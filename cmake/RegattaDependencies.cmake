# Finds the libraries Regatta is linked with and gives each a target regatta::NAME.
# The build reads this file, and so does the installed package: both look in the same way.
#
# A site's own builds are found first through CMAKE_PREFIX_PATH (or PKG_CONFIG_PATH); the StarPU
# that scripts/setup built is the fallback, handed over in REGATTA_STARPU_FALLBACK (a prefix). The
# oneDNN that scripts/onednn built is used where it is handed over in REGATTA_ONEDNN_PREFIX.
# REGATTA_MISSING comes back as a list of sentences, one for each library not found.

set(REGATTA_MISSING "")

# --- StarPU: only pkg-config knows its flags (with CUDA its headers include CUDA's) ---------------

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  list(APPEND REGATTA_MISSING "pkg-config (Debian: pkg-config)")
endif()

# StarPU may have moved since the last configuration, so nothing about it is kept.
get_cmake_property(_regatta_cached CACHE_VARIABLES)
foreach(_regatta_name IN LISTS _regatta_cached)
  if(_regatta_name MATCHES "^(__pkg_config_checked_|pkgcfg_lib_)?REGATTA_STARPU_PC")
    unset(${_regatta_name} CACHE)
  endif()
endforeach()
unset(_regatta_cached)

macro(_regatta_search_starpu)
  if(PKG_CONFIG_FOUND)
    pkg_search_module(REGATTA_STARPU_PC QUIET IMPORTED_TARGET
                      starpu-1.6>=1.4 starpu-1.5>=1.4 starpu-1.4>=1.4)
  endif()
endmacro()

if(NOT TARGET regatta::starpu)
  _regatta_search_starpu()
  if(NOT REGATTA_STARPU_PC_FOUND AND REGATTA_STARPU_FALLBACK)
    set(_regatta_pkg_config_path "$ENV{PKG_CONFIG_PATH}")
    set(ENV{PKG_CONFIG_PATH} "${REGATTA_STARPU_FALLBACK}/lib/pkgconfig:${_regatta_pkg_config_path}")
    unset(__pkg_config_checked_REGATTA_STARPU_PC CACHE)
    _regatta_search_starpu()
    set(ENV{PKG_CONFIG_PATH} "${_regatta_pkg_config_path}")
  endif()
  if(REGATTA_STARPU_PC_FOUND)
    add_library(regatta::starpu INTERFACE IMPORTED)
    target_link_libraries(regatta::starpu INTERFACE PkgConfig::REGATTA_STARPU_PC)
  else()
    list(APPEND REGATTA_MISSING
      "StarPU 1.4 or newer")
  endif()
endif()

# --- plain libraries: a header and a library each -------------------------------------------------

# regatta_library(NAME HEADER LIBRARY PACKAGE) makes regatta::NAME; LIBRARY "" means headers only.
function(regatta_library name header library package)
  if(TARGET regatta::${name})
    return()
  endif()
  find_path(REGATTA_${name}_INCLUDE ${header})
  mark_as_advanced(REGATTA_${name}_INCLUDE)
  set(found ${REGATTA_${name}_INCLUDE})
  if(found AND library)
    find_library(REGATTA_${name}_LIBRARY ${library})
    mark_as_advanced(REGATTA_${name}_LIBRARY)
    set(found ${REGATTA_${name}_LIBRARY})
  endif()
  if(NOT found)
    list(APPEND REGATTA_MISSING "${name} (Debian: ${package})")
    set(REGATTA_MISSING "${REGATTA_MISSING}" PARENT_SCOPE)
    return()
  endif()
  add_library(regatta::${name} INTERFACE IMPORTED)
  target_include_directories(regatta::${name} SYSTEM INTERFACE ${REGATTA_${name}_INCLUDE})
  if(library)
    target_link_libraries(regatta::${name} INTERFACE ${REGATTA_${name}_LIBRARY})
  endif()
endfunction()

if(REGATTA_ONEDNN_PREFIX)
  # Not in the cache, so that a build can go back to the system's.
  set(REGATTA_dnnl_INCLUDE ${REGATTA_ONEDNN_PREFIX}/include)
  set(REGATTA_dnnl_LIBRARY ${REGATTA_ONEDNN_PREFIX}/lib/libdnnl.so)
endif()
regatta_library(dnnl oneapi/dnnl/dnnl.hpp dnnl libdnnl-dev)
regatta_library(hwloc hwloc.h hwloc libhwloc-dev)
regatta_library(sqlite sqlite3.h sqlite3 libsqlite3-dev)
regatta_library(jpeg jpeglib.h jpeg libjpeg-dev)
regatta_library(png png.h png libpng-dev)
regatta_library(simgrid simgrid/s4u.hpp simgrid libsimgrid-dev)
# The optimizer's linear programs, and exact arithmetic for their proofs.
regatta_library(coinutils coin/CoinPackedMatrix.hpp CoinUtils coinor-libcoinutils-dev)
regatta_library(clp coin/ClpSimplex.hpp Clp coinor-libclp-dev)
regatta_library(gmp gmp.h gmp libgmp-dev)
regatta_library(gmpxx gmpxx.h gmpxx libgmp-dev)
if(TARGET regatta::clp AND TARGET regatta::coinutils)
  target_link_libraries(regatta::clp INTERFACE regatta::coinutils)
endif()
if(TARGET regatta::gmpxx AND TARGET regatta::gmp)
  target_link_libraries(regatta::gmpxx INTERFACE regatta::gmp)
endif()

# Only ONNX's messages are needed, not its checker.
regatta_library(protobuf google/protobuf/message.h protobuf libprotobuf-dev)
regatta_library(onnx onnx/onnx_pb.h onnx_proto libonnx-dev)
if(TARGET regatta::onnx AND TARGET regatta::protobuf)
  target_compile_definitions(regatta::onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
  target_link_libraries(regatta::onnx INTERFACE regatta::protobuf)
endif()

find_package(OpenSSL QUIET)
if(NOT TARGET OpenSSL::Crypto)
  list(APPEND REGATTA_MISSING "OpenSSL (Debian: libssl-dev)")
endif()
find_package(ZLIB QUIET)
if(NOT TARGET ZLIB::ZLIB)
  list(APPEND REGATTA_MISSING "zlib (Debian: zlib1g-dev)")
endif()
find_package(Threads QUIET)
if(NOT TARGET Threads::Threads)
  list(APPEND REGATTA_MISSING "a thread library")
endif()
find_package(OpenMP QUIET COMPONENTS CXX)
if(NOT TARGET OpenMP::OpenMP_CXX)
  list(APPEND REGATTA_MISSING "OpenMP in the C++ compiler (Debian: g++)")
endif()

# --- CUDA, only where the caller asks -------------------------------------------------------------

# Makes regatta::cuda: the static runtime, and headers of libraries that are opened when first used
# (src/backends/cuda/libraries.h).
function(regatta_find_cuda)
  if(TARGET regatta::cuda)
    return()
  endif()
  set(places $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda)
  set(needed "")
  foreach(header IN ITEMS cuda_runtime cublasLt cudnn)
    find_path(REGATTA_${header}_INCLUDE ${header}.h HINTS ${places} PATH_SUFFIXES include)
    mark_as_advanced(REGATTA_${header}_INCLUDE)
    list(APPEND needed ${REGATTA_${header}_INCLUDE})
  endforeach()
  find_library(REGATTA_cudart_LIBRARY cudart_static HINTS ${places} PATH_SUFFIXES lib64 lib)
  # A build without CUPTI does not time kernels.
  find_path(REGATTA_cupti_INCLUDE cupti.h HINTS ${places} PATH_SUFFIXES include extras/CUPTI/include)
  mark_as_advanced(REGATTA_cudart_LIBRARY REGATTA_cupti_INCLUDE)
  if(NOT "${needed};${REGATTA_cudart_LIBRARY}" MATCHES "NOTFOUND")
    add_library(regatta::cuda INTERFACE IMPORTED)
    target_include_directories(regatta::cuda SYSTEM INTERFACE ${needed}
      $<$<BOOL:${REGATTA_cupti_INCLUDE}>:${REGATTA_cupti_INCLUDE}>)
    target_link_libraries(regatta::cuda INTERFACE ${REGATTA_cudart_LIBRARY} rt ${CMAKE_DL_LIBS})
  endif()
endfunction()
