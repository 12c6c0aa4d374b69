# smelt_folder(NAME DEPS folder... [LIBS target...]): one static library per folder of smelt/, named
# smelt_NAME with slashes as underscores. Sources are globbed, sub-folders included. DEPS is the layer
# law that tools/check_layers.py reads: the folders that NAME may include (base is always allowed).
# LIBS are libraries that only its sources see. Of sources for one processor, *.x86.cc and *.aarch64.cc, only those of the one
# that is built for are compiled (smelt/base/processor.h).
set(SMELT_OTHER_PROCESSORS aarch64)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(SMELT_OTHER_PROCESSORS x86)
  # As on x86.
  add_compile_options(-fsigned-char)
endif()
function(smelt_folder NAME)
  cmake_parse_arguments(F "" "" "DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" target "smelt_${NAME}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/smelt/${NAME}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|main|operator_new|\\.${SMELT_OTHER_PROCESSORS})\\.cc$")
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
  foreach(dep ${F_DEPS})
    string(REPLACE "/" "_" dep_target "smelt_${dep}")
    target_link_libraries(${target} PUBLIC ${dep_target})
  endforeach()
  if(NOT NAME STREQUAL "base")
    target_link_libraries(${target} PUBLIC smelt_base)
  endif()
  target_link_libraries(${target} PRIVATE ${F_LIBS})
  target_compile_options(${target} PRIVATE ${SMELT_WARNINGS})
  if(SMELT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
