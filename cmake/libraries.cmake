# The libraries of Debian 12 that smelt stands on, each as one target. Static where the archive is
# packaged, so that a start loads few shared objects. Only the folders named in CMakeLists.txt see them.
# Debian's archives are not position independent: a shared library links the shared objects.
set(SMELT_LINKS_SHARED $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
function(smelt_library TARGET HEADER)
  add_library(${TARGET} INTERFACE)
  find_path(${TARGET}_INCLUDE ${HEADER} REQUIRED)
  foreach(lib ${ARGN})
    find_library(${TARGET}_${lib}_LIB NAMES lib${lib}.a ${lib} REQUIRED)
    find_library(${TARGET}_${lib}_SHARED NAMES ${lib} REQUIRED)
    target_link_libraries(${TARGET} INTERFACE $<IF:${SMELT_LINKS_SHARED},${${TARGET}_${lib}_SHARED},${${TARGET}_${lib}_LIB}>)
  endforeach()
endfunction()

# Abseil's packaged CMake files name the shared objects; the archives stand beside them.
find_library(ABSL_ONE NAMES libabsl_status.a REQUIRED)
get_filename_component(ABSL_DIR ${ABSL_ONE} DIRECTORY)
file(GLOB ABSL_ARCHIVES ${ABSL_DIR}/libabsl_*.a)
list(FILTER ABSL_ARCHIVES EXCLUDE REGEX "libabsl_(flags_parse|scoped_set_env)")
if(SMELT_SANITIZE MATCHES "thread")
  set(ABSL_TSAN ${CMAKE_BINARY_DIR}/absl_tsan)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/tools/thread_sanitized_absl.sh ${ABSL_TSAN}
                  COMMAND_ERROR_IS_FATAL ANY)
  list(FILTER ABSL_ARCHIVES EXCLUDE REGEX "libabsl_synchronization")
  list(PREPEND ABSL_ARCHIVES ${ABSL_TSAN}/libabsl_tsan.a)
endif()
string(REGEX REPLACE "\\.a(;|$)" ".so\\1" ABSL_SHARED "${ABSL_ARCHIVES}")
add_library(smelt_absl INTERFACE)
target_link_libraries(smelt_absl INTERFACE "$<IF:${SMELT_LINKS_SHARED},${ABSL_SHARED},-Wl$<COMMA>--start-group;${ABSL_ARCHIVES};-Wl$<COMMA>--end-group>" pthread)

smelt_library(smelt_isal isa-l.h isal)
# Tar and gzip alone, so that of the archive library only these parts are linked.
smelt_library(smelt_archive archive.h archive z)
smelt_library(smelt_snappy snappy.h snappy)
smelt_library(smelt_flatbuffers flatbuffers/flatbuffers.h flatbuffers)
smelt_library(smelt_re2 re2/re2.h re2)
smelt_library(smelt_cli11 CLI/CLI.hpp)
smelt_library(smelt_rapidjson rapidjson/document.h)
smelt_library(smelt_nettle nettle/sha2.h nettle)
smelt_library(smelt_farmhash farmhash.h farmhash)
smelt_library(smelt_jpeg jpeglib.h jpeg)
smelt_library(smelt_zlib zlib.h z)
smelt_library(smelt_png png.h png16)
target_link_libraries(smelt_png INTERFACE smelt_zlib m)
smelt_library(smelt_gif gif_lib.h gif)

# Eigen is headers alone. Only the sources of these folders see it; each of them compiles by itself
# in unity builds too, as it takes long enough.
function(smelt_eigen)
  find_path(SMELT_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/smelt/kernels/linalg/*.cc
       ${CMAKE_SOURCE_DIR}/smelt/kernels/elementwise/special/*.cc)
  set_source_files_properties(
    ${sources} PROPERTIES COMPILE_OPTIONS
    "-isystem;${SMELT_EIGEN_INCLUDE};-DEIGEN_MPL2_ONLY;-DEIGEN_DONT_PARALLELIZE")
endfunction()
smelt_library(smelt_webp webp/decode.h webpdemux webp)
