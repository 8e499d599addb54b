# Headers as C strings: emitted files carry the contract with the runtime, and the mathematics they use, in them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
foreach(pair cg_abi_text=include/tiga/abi.h cg_math_f32_text=ir/ir_math_f32.h cg_math_f64_text=ir/ir_math_f64.h)
  string(REGEX MATCH "^(.*)=(.*)$" pair ${pair})
  set(text_name ${CMAKE_MATCH_1})
  set(text_input ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_2})
  set(text_output ${CMAKE_BINARY_DIR}/generated/codegen/${text_name}.c)
  add_custom_command(
    OUTPUT ${text_output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${text_input} -DNAME=${text_name} -DOUTPUT=${text_output}
            -P ${PROJECT_SOURCE_DIR}/codegen/embed_text.cmake
    DEPENDS ${text_input} ${PROJECT_SOURCE_DIR}/codegen/embed_text.cmake)
  target_sources(${name} PRIVATE ${text_output})
endforeach()
target_link_libraries(${name} PRIVATE PkgConfig::JANSSON)
