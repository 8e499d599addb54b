# Threads under the thread sanitizer.  Long: what they test is built anew.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT TIGA_SANITIZE)
  add_test(NAME threads.memory
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/threads/run.sh ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR}
                   hierarchy_runtime_buffers hierarchy_runtime_copies hierarchy_runtime_hierarchy)
  set_tests_properties(threads.memory PROPERTIES TIMEOUT 1200 LABELS long ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  if(TIGA_COMPILER)
    add_test(NAME threads.tensors
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/threads/tensors.sh ${PROJECT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/threads/build)
    set_tests_properties(threads.tensors PROPERTIES TIMEOUT 1800 LABELS long
                         ENVIRONMENT "CC=${CMAKE_C_COMPILER};CXX=${CMAKE_CXX_COMPILER}")
  endif()
endif()

# In the build that tensors.sh makes: tensors and the compiler below them, with tests that do without Criterion.
if(TIGA_SANITIZE STREQUAL "thread" AND TIGA_COMPILER)
  add_executable(threads_tensors EXCLUDE_FROM_ALL unit/tensor_threads.c threads/main.c)
  target_include_directories(threads_tensors BEFORE PRIVATE threads)
  target_link_libraries(threads_tensors PRIVATE tensor_objects tigac_objects hierarchy_runtime Threads::Threads)
endif()
