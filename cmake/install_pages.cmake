# Asks the program for its manual pages and shell completion. The caller has set pages_program, and
# the folders pages_data and pages_manual.
function(page file)
  execute_process(COMMAND ${pages_program} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${file}")
  file(WRITE ${file} "${text}")
endfunction()

page(${pages_data}/bash-completion/completions/regatta completion bash)
page(${pages_data}/zsh/vendor-completions/_regatta completion zsh)
page(${pages_manual}/regatta.1 manual)
file(STRINGS ${pages_manual}/regatta.1 commands REGEX "regatta\\\\-[a-z]+ ")
foreach(line IN LISTS commands)
  string(REGEX REPLACE ".*regatta\\\\-([a-z]+) .*" "\\1" command "${line}")
  page(${pages_manual}/regatta-${command}.1 manual ${command})
endforeach()
