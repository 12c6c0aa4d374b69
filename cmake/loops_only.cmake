# -DSMELT_LOOPS_ONLY=ON: the loops of smelt/kernels/isa, the teams of threads of smelt/base and their tests, which need no library
# but headers of Abseil and the sources of GoogleTest that Debian packages: for processors whose libraries are not at hand.
set(smelt_headers ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${smelt_headers})
find_path(SMELT_HOST_ABSL absl/base/config.h PATHS /usr/include REQUIRED NO_CMAKE_FIND_ROOT_PATH)
file(CREATE_LINK ${SMELT_HOST_ABSL}/absl ${smelt_headers}/absl SYMBOLIC)
find_path(SMELT_GOOGLETEST src/gtest-all.cc PATHS /usr/src/googletest/googletest REQUIRED NO_CMAKE_FIND_ROOT_PATH)

find_package(Threads REQUIRED)
set(base ${CMAKE_SOURCE_DIR}/smelt/base)
file(GLOB processor CONFIGURE_DEPENDS ${base}/processor.*.cc)
file(GLOB loops CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/smelt/kernels/isa/*.cc)
set(sources ${base}/cache_size.cc ${base}/parallel.cc ${base}/team.cc ${processor} ${loops})
list(FILTER sources EXCLUDE REGEX "\\.${SMELT_OTHER_PROCESSORS}\\.cc$")
add_library(smelt_kernels STATIC ${sources})
target_include_directories(smelt_kernels PUBLIC ${CMAKE_SOURCE_DIR})
target_include_directories(smelt_kernels SYSTEM PUBLIC ${smelt_headers})
target_link_libraries(smelt_kernels PUBLIC Threads::Threads)
target_compile_options(smelt_kernels PRIVATE ${SMELT_WARNINGS})
smelt_isa(smelt_kernels)

add_library(gtest STATIC ${SMELT_GOOGLETEST}/src/gtest-all.cc)
target_include_directories(gtest SYSTEM PUBLIC ${SMELT_GOOGLETEST}/include PRIVATE ${SMELT_GOOGLETEST})
add_library(gtest_main STATIC ${SMELT_GOOGLETEST}/src/gtest_main.cc)
target_link_libraries(gtest_main PUBLIC gtest)

enable_testing()
add_subdirectory(tests/isa)
