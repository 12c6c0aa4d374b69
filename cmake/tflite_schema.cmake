# smelt_tflite_schema(TARGET): what flatc makes of smelt/wire/tflite/tflite.fbs, included as
# "tflite_generated.h" and, its reflection, "tflite_bfbs_generated.h".
function(smelt_tflite_schema TARGET)
  find_program(SMELT_FLATC flatc REQUIRED)
  set(schema ${CMAKE_SOURCE_DIR}/smelt/wire/tflite/tflite.fbs)
  set(gen ${CMAKE_BINARY_DIR}/gen)
  add_custom_command(
    OUTPUT ${gen}/tflite_generated.h ${gen}/tflite_bfbs_generated.h
    COMMAND ${SMELT_FLATC} --cpp --bfbs-gen-embed -b --schema -o ${gen} ${schema}
    DEPENDS ${schema}
    COMMENT "flatc tflite.fbs"
    VERBATIM)
  target_sources(${TARGET} PRIVATE ${gen}/tflite_generated.h ${gen}/tflite_bfbs_generated.h)
endfunction()
