# smelt_protos(TARGET): a static library TARGET of the messages in smelt/wire/proto/*.proto.
# Included from the root, as in "smelt/wire/proto/framework.pb.h".

option(SMELT_STATIC_PROTOBUF
       "Link libprotobuf.a where it exists; turn off when another library brings libprotobuf.so" ON)

function(smelt_protos TARGET)
  find_program(SMELT_PROTOC protoc REQUIRED)
  find_path(SMELT_PROTOBUF_INCLUDE google/protobuf/message.h REQUIRED)
  find_library(SMELT_PROTOBUF_STATIC libprotobuf.a)
  find_library(SMELT_PROTOBUF_SHARED protobuf)
  mark_as_advanced(SMELT_PROTOC SMELT_PROTOBUF_INCLUDE SMELT_PROTOBUF_STATIC SMELT_PROTOBUF_SHARED)
  if(SMELT_STATIC_PROTOBUF AND SMELT_PROTOBUF_STATIC)
    set(protobuf $<IF:${SMELT_LINKS_SHARED},${SMELT_PROTOBUF_SHARED},${SMELT_PROTOBUF_STATIC}>)
  elseif(SMELT_PROTOBUF_SHARED)
    set(protobuf ${SMELT_PROTOBUF_SHARED})
  else()
    message(FATAL_ERROR "libprotobuf not found; on Debian: apt install libprotobuf-dev")
  endif()
  find_package(Threads REQUIRED)

  set(root ${PROJECT_SOURCE_DIR})
  set(gen ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${gen}/smelt/wire/proto)
  file(GLOB protos CONFIGURE_DEPENDS ${root}/smelt/wire/proto/*.proto)

  set(sources)
  set(headers)
  foreach(proto IN LISTS protos)
    get_filename_component(name ${proto} NAME_WE)
    set(out ${gen}/smelt/wire/proto/${name})
    # The depfile makes an edit rebuild that file and those that import it, not all of them.
    add_custom_command(
      OUTPUT ${out}.pb.cc ${out}.pb.h
      COMMAND ${SMELT_PROTOC} --proto_path=${root} --cpp_out=${gen}
              --dependency_out=${out}.pb.d ${proto}
      DEPENDS ${proto}
      DEPFILE ${out}.pb.d
      COMMENT "protoc ${name}.proto"
      VERBATIM)
    list(APPEND sources ${out}.pb.cc)
    list(APPEND headers ${out}.pb.h)
  endforeach()

  add_library(${TARGET} STATIC ${sources} ${headers})
  target_compile_features(${TARGET} PUBLIC cxx_std_20)
  # -O1: parsing lives in libprotobuf; -O3 here would nearly double the compile time.
  target_compile_options(${TARGET} PRIVATE -w $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
  target_include_directories(${TARGET} SYSTEM PUBLIC ${gen} ${SMELT_PROTOBUF_INCLUDE})
  target_link_libraries(${TARGET} PUBLIC ${protobuf} Threads::Threads)
  # Generated files define the same file-local names, so they cannot share a unity batch.
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD OFF CXX_CLANG_TIDY ""
                        POSITION_INDEPENDENT_CODE ON)
endfunction()
