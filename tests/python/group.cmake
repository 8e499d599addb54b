# The Python package: the same tests with the extension and through ctypes, with numpy and without.
if(TIGA_COMPILER AND NOT TIGA_SANITIZE) # Python is not instrumented
  set(python_dir ${CMAKE_CURRENT_LIST_DIR})
  set(env_fast)
  set(env_ctypes TIGA_PYTHON_EXTENSION=off)
  set(env_bare TIGA_TEST_NUMPY=off)
  set(env_bare_ctypes TIGA_TEST_NUMPY=off TIGA_PYTHON_EXTENSION=off)
  set(tests_bare test_calls test_arrays test_graphs test_tensors test_tensor_gradients test_lifetimes) # the others know nothing of numpy
  set(tests_bare_ctypes ${tests_bare})
  foreach(way fast ctypes bare bare_ctypes)
    add_test(NAME python.${way} COMMAND ${TIGA_PYTHON} -m unittest -q ${tests_${way}} WORKING_DIRECTORY ${python_dir})
    set_tests_properties(python.${way} PROPERTIES TIMEOUT 600 LABELS python ENVIRONMENT
      "TIGA_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;${env_${way}}")
  endforeach()
  add_test(NAME python.example_gradients COMMAND ${TIGA_PYTHON} -m unittest -q example_gradients WORKING_DIRECTORY ${python_dir})
  set_tests_properties(python.example_gradients PROPERTIES TIMEOUT 600 LABELS "python;grad" ENVIRONMENT
    "TIGA_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME python.wheel COMMAND ${TIGA_PYTHON} -m unittest -q wheel WORKING_DIRECTORY ${python_dir})
  set_tests_properties(python.wheel PROPERTIES TIMEOUT 3600 LABELS long)
endif()
