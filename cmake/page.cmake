# The page of smelt optimize --html: its own files, and dagre, which lays graphs out (Debian's
# python3-xstatic-dagre), become one string of the program.
function(smelt_page TARGET)
  find_file(SMELT_DAGRE dagre.min.js PATHS /usr/lib/python3/dist-packages/xstatic/pkg/dagre/data REQUIRED)
  find_file(SMELT_DAGRE_LICENCE copyright PATHS /usr/share/doc/python3-xstatic-dagre REQUIRED NO_DEFAULT_PATH)
  set(page ${CMAKE_SOURCE_DIR}/smelt/cli/page)
  # In the order in which they stand in the page.
  set(parts ${page}/page.html ${page}/page.css ${SMELT_DAGRE} ${SMELT_DAGRE_LICENCE} ${page}/model.js ${page}/tree.js
      ${page}/layout.js ${page}/pane.js ${page}/details.js ${page}/main.js)
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/gen/page_parts.cc
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/gen
    COMMAND python3 ${page}/embed.py ${CMAKE_BINARY_DIR}/gen/page_parts.cc ${parts}
    DEPENDS ${page}/embed.py ${parts})
  target_sources(${TARGET} PRIVATE ${CMAKE_BINARY_DIR}/gen/page_parts.cc)
endfunction()
