# Gradients against central differences, and the interpreter against compiled code: see grad_main.c.
if(TIGA_COMPILER)
  add_executable(grad_test ${CMAKE_CURRENT_LIST_DIR}/grad_main.c ${CMAKE_CURRENT_SOURCE_DIR}/diff/diff_graphs.c
                           ${CMAKE_CURRENT_SOURCE_DIR}/diff/diff_random.c)
  target_include_directories(grad_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/diff ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(grad_test PRIVATE ir Tiga::tiga Tiga::tigac m)
  target_compile_options(grad_test PRIVATE ${TIGA_WARNINGS})
  file(GLOB grad_cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cases/*.tg)
  foreach(path ${grad_cases})
    get_filename_component(case ${path} NAME_WE)
    add_test(NAME grad.${case} COMMAND grad_test ${path})
    set_tests_properties(grad.${case} PROPERTIES TIMEOUT 300 LABELS grad)
  endforeach()
endif()
