# Fuzzers (libFuzzer): one program per fuzz/NAME_fuzz.cpp. They need only the rooms that read files,
# and neither StarPU nor oneDNN, so they are a build of their own: cmake --preset fuzz.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "Fuzzers need clang (Debian: clang-16 libclang-rt-16-dev); run scripts/fuzz")
endif()

foreach(room IN ITEMS base graph ops models platform profile plan data trace)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} src/${room}/*.cpp)
  list(APPEND fuzzed_sources ${sources})
endforeach()

add_library(regatta_fuzzed STATIC ${fuzzed_sources})
target_include_directories(regatta_fuzzed PUBLIC src include fuzz)
# Speed finds more than symbols do; the sanitizers do the watching.
target_compile_options(regatta_fuzzed PUBLIC -O1 -g1 -Wno-unknown-pragmas -fno-omit-frame-pointer
  -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
target_compile_definitions(regatta_fuzzed PUBLIC REGATTA_VERSION="${PROJECT_VERSION}")
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(SQLite3 REQUIRED)
# As the dependencies of the program have it; only what is fuzzed is looked for.
target_compile_definitions(regatta_fuzzed PUBLIC ONNX_ML=1 ONNX_NAMESPACE=onnx)
find_library(REGATTA_onnx_LIBRARY onnx_proto REQUIRED)
find_library(REGATTA_protobuf_LIBRARY protobuf REQUIRED)
target_link_libraries(regatta_fuzzed PUBLIC ${REGATTA_onnx_LIBRARY} ${REGATTA_protobuf_LIBRARY}
  OpenSSL::Crypto ZLIB::ZLIB JPEG::JPEG PNG::PNG SQLite::SQLite3 Threads::Threads
  ${CMAKE_DL_LIBS})

file(GLOB fuzz_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} fuzz/*_fuzz.cpp)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE regatta_fuzzed)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
endforeach()

# Writes small good files, from which the fuzzers start.
add_executable(fuzz_seeds fuzz/seeds.cpp)
target_link_libraries(fuzz_seeds PRIVATE regatta_fuzzed)
target_link_options(fuzz_seeds PRIVATE -fsanitize=address,undefined)
