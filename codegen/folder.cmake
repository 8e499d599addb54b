# abi.h as a C string: emitted files carry the contract with the runtime in them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
set(abi_text ${CMAKE_BINARY_DIR}/generated/codegen/cg_abi_text.c)
add_custom_command(
  OUTPUT ${abi_text}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/include/tiga/abi.h -DOUTPUT=${abi_text}
          -P ${PROJECT_SOURCE_DIR}/codegen/embed_abi.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/include/tiga/abi.h ${PROJECT_SOURCE_DIR}/codegen/embed_abi.cmake)
target_sources(${name} PRIVATE ${abi_text})
target_link_libraries(${name} PRIVATE PkgConfig::JANSSON)
