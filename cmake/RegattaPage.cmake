# The report page: web/ bundled with its npm packages into one C++ file, REGATTA_PAGE_SOURCE.
# scripts/setup has fetched the packages into the cache; nothing is fetched here.

set(REGATTA_PAGE_SOURCE ${PROJECT_BINARY_DIR}/report_page.cpp)
if(NOT REGATTA_PAGE)
  file(WRITE ${REGATTA_PAGE_SOURCE}.new
    "#include \"report/page.h\"\nnamespace regatta {\nconst std::string_view report_page;\n}\n")
  file(COPY_FILE ${REGATTA_PAGE_SOURCE}.new ${REGATTA_PAGE_SOURCE} ONLY_IF_DIFFERENT)
  return()
endif()

# Debian's own first: what users have decides, not a newer one that happens to be in PATH.
find_program(REGATTA_NODE node PATHS /usr/bin NO_DEFAULT_PATH)
find_program(REGATTA_NODE node)
mark_as_advanced(REGATTA_NODE)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/web find
  OUTPUT_VARIABLE REGATTA_PAGE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT REGATTA_NODE OR NOT IS_DIRECTORY "${REGATTA_PAGE_PACKAGES}/node_modules")
  message(FATAL_ERROR "The report page needs node and the npm packages of web/package.json: run "
    "scripts/setup (or scripts/web install), or build without the page: -DREGATTA_PAGE=OFF")
endif()

file(GLOB page_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*.js
     ${PROJECT_SOURCE_DIR}/web/*.mjs ${PROJECT_SOURCE_DIR}/web/*.css ${PROJECT_SOURCE_DIR}/web/*.html)
add_custom_command(OUTPUT ${REGATTA_PAGE_SOURCE}
  COMMAND ${REGATTA_NODE} ${PROJECT_SOURCE_DIR}/web/bundle.mjs ${REGATTA_PAGE_PACKAGES}
          ${REGATTA_PAGE_SOURCE}
  DEPENDS ${page_sources} ${PROJECT_SOURCE_DIR}/web/package-lock.json
  COMMENT "Bundling the report page" VERBATIM)
