# Relations of more than 2^31 edges.  Long: each kernel walks all of them.
if(TIGA_COMPILER AND NOT TIGA_SANITIZE AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  add_executable(many_edges ${CMAKE_CURRENT_LIST_DIR}/many_edges.c)
  target_link_libraries(many_edges PRIVATE Tiga::tiga Tiga::tigac)
  target_compile_options(many_edges PRIVATE ${TIGA_WARNINGS})
  add_test(NAME large.many_edges COMMAND many_edges)
  set_tests_properties(large.many_edges PROPERTIES TIMEOUT 1200 LABELS long)
endif()
