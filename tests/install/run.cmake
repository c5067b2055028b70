# Installs the build into a fresh prefix, then configures, builds and runs a project that uses it.
set(prefix ${build}/install-test/prefix)
set(consumer ${build}/install-test/consumer)
file(REMOVE_RECURSE ${build}/install-test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix} --config ${config})
run(${CMAKE_COMMAND} -S ${source}/tests/install -B ${consumer} -G Ninja
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler}
  -D EXAMPLE=${source}/examples/example-mnist.cpp "-DCMAKE_PREFIX_PATH=${prefix};${prefixes}")
run(${CMAKE_COMMAND} --build ${consumer})
run(${consumer}/consumer)
file(REMOVE_RECURSE ${build}/install-test)
