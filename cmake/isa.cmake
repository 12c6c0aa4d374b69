# smelt_isa(TARGET): compiles smelt/kernels/isa/*.isa.cpp once per instruction set into TARGET.
# -fno-trapping-math and -fno-math-errno let comparisons become blends and sqrt one instruction; no
# other rule of floating point is loosened.
# As in smelt/base/processor.h.
set(SMELT_ISA_SETS sse2 avx2 avx512)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(SMELT_ISA_SETS neon)
endif()
function(smelt_isa TARGET)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/smelt/kernels/isa/*.isa.cpp)
  set(flags_sse2 -march=x86-64)
  set(flags_avx2 -march=x86-64-v3)
  set(flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  set(flags_neon -march=armv8-a)
  # Quantization must round after each operation, as TensorFlow's does.
  foreach(family elementwise exact_int8_rounded)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/smelt/kernels/isa/${family}.isa.cpp
                                PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  endforeach()
  # -O3 would make builds with sanitizers too slow.
  set(optimize -O3)
  if(SMELT_SANITIZE)
    set(optimize)
  endif()
  foreach(isa ${SMELT_ISA_SETS})
    set(objects ${TARGET}_isa_${isa})
    add_library(${objects} OBJECT ${sources})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${objects} PRIVATE SMELT_ISA_NAMESPACE=isa_${isa})
    target_compile_options(${objects} PRIVATE ${SMELT_WARNINGS} ${optimize} -fno-trapping-math -fno-math-errno
                           -Wno-psabi ${flags_${isa}})
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
    target_sources(${TARGET} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
