# Graph and array files: what is wrong gives one clear error; what SciPy and we write, the other reads.
add_executable(test_bad_files ${CMAKE_CURRENT_LIST_DIR}/bad_files.c)
target_link_libraries(test_bad_files PRIVATE runtime)
target_compile_options(test_bad_files PRIVATE ${TIGA_WARNINGS})
add_test(NAME files.bad COMMAND test_bad_files ${CMAKE_CURRENT_LIST_DIR})
set_tests_properties(files.bad PROPERTIES TIMEOUT 600 LABELS files)

if(NOT TIGA_SANITIZE) # Python is not instrumented
foreach(python /usr/bin/python3 python3)
  execute_process(COMMAND ${python} -c "import scipy.sparse" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing EQUAL 0)
    add_test(NAME files.scipy COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/npz_scipy.py $<TARGET_FILE:tiga_shared>)
    add_test(NAME files.snapshots COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/snapshot_numpy.py $<TARGET_FILE:tiga_shared>)
    set_tests_properties(files.scipy files.snapshots PROPERTIES TIMEOUT 600 LABELS files)
    break()
  endif()
endforeach()
endif()
