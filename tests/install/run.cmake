# Installs the build, moves the prefix, and looks at it as another user would: the program runs with
# an empty environment, nothing in it knows a folder of the builder, and other projects can use it
# through find_package and pkg-config.
set(work ${build}/install-test)
set(prefix ${work}/moved)
set(consumer ${work}/consumer)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endfunction()

function(output_of variable)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(must_match text regex what)
  if(NOT text MATCHES "${regex}")
    message(FATAL_ERROR "${what}: found no '${regex}' in: ${text}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/first --config ${config})
file(RENAME ${work}/first ${prefix})

# --- the program ---------------------------------------------------------------------------------

output_of(said env -i ${prefix}/bin/regatta models)
must_match("${said}" "resnet50" "the moved program")
output_of(dynamic readelf -d ${prefix}/bin/regatta)
string(REGEX MATCHALL "R(UN)?PATH\\)[^\n]*" paths "${dynamic}")
must_match("${paths}" "^RPATH\\) +Library rpath: \\[\\$ORIGIN/\\.\\./lib[a-z0-9_/-]*/regatta\\]$" "its RPATH")

# The folders of the builder must not be in any file: those of the sources, the build and the cache.
foreach(folder IN ITEMS ${source} ${build} ${cache})
  execute_process(COMMAND grep -rlF ${folder} ${prefix} OUTPUT_VARIABLE found)
  if(found)
    message(FATAL_ERROR "installed files that know ${folder}:\n${found}")
  endif()
endforeach()

# A run on CPUs loads no CUDA library; where there is no GPU, nor does one that may choose its devices.
set(devices --devices cpu)
if(NOT EXISTS /dev/nvidiactl)
  set(devices --devices auto)
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_DEBUG=files
  ${prefix}/bin/regatta train --model tiny --data synth:1x8x8/4@40 --batch 4 --steps 2 --test none
  --granularity fixed ${devices} --out ${work}/run
  OUTPUT_VARIABLE said ERROR_VARIABLE loaded COMMAND_ERROR_IS_FATAL ANY)
must_match("${loaded}" "libstarpu-[^\n]*" "loaded libraries")
if(loaded MATCHES "lib(cuda|cudart|cudnn|cublas)[^\n]*")
  message(FATAL_ERROR "a run on CPUs loads ${CMAKE_MATCH_0}")
endif()
if(loaded MATCHES "lib(mpi|open-rte|regatta_mpi)\\.[^\n]*")
  message(FATAL_ERROR "a run without a launcher loads ${CMAKE_MATCH_0}")
endif()
# StarPU does not miss folders of the machine that built it.
if(loaded MATCHES "Warning: directory[^\n]*")
  message(FATAL_ERROR "StarPU says: ${CMAKE_MATCH_0}")
endif()

# The tests that a package has find their files from any folder.
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/packed --component everywhere
  --config ${config})
if(NOT IS_DIRECTORY ${work}/packed/share/regatta/tests/platforms)
  message(FATAL_ERROR "the packed tests have no files")
endif()
run(${CMAKE_COMMAND} -E chdir / ${work}/packed/bin/regatta_tests --gtest_brief=1
  --gtest_filter=PlatformGallery.*:RecipeFixtures.*:PlanFile.*:ImportPaje.*:FuzzRegressions.*:NetworkJson.*)

foreach(page IN ITEMS man/man1/regatta.1 man/man1/regatta-train.1
    bash-completion/completions/regatta zsh/vendor-completions/_regatta)
  file(SIZE ${prefix}/share/${page} bytes)
  if(bytes LESS 200)
    message(FATAL_ERROR "share/${page} is empty")
  endif()
endforeach()

# --- other projects ------------------------------------------------------------------------------

run(${CMAKE_COMMAND} -S ${source}/tests/install -B ${consumer} -G Ninja
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler}
  -D EXAMPLE=${source}/examples/example-mnist.cpp "-DCMAKE_PREFIX_PATH=${prefix};${prefixes}")
run(${CMAKE_COMMAND} --build ${consumer})
run(${consumer}/consumer)

file(GLOB_RECURSE pc ${prefix}/regatta.pc)
get_filename_component(pc ${pc} DIRECTORY)
output_of(flags ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc}
  pkg-config --cflags --libs regatta)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${compiler} -std=c++20 ${source}/examples/example-mnist.cpp -o ${work}/by-pkg-config ${flags})
run(${work}/by-pkg-config)
file(REMOVE_RECURSE ${work})
