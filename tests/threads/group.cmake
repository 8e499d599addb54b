# Threads of the memory system under the thread sanitizer.  Long: it builds three folders anew.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT TIGA_SANITIZE)
  add_test(NAME threads.memory
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/threads/run.sh ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR}
                   hierarchy_runtime_buffers hierarchy_runtime_copies hierarchy_runtime_hierarchy)
  set_tests_properties(threads.memory PROPERTIES TIMEOUT 1200 LABELS long ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
endif()
