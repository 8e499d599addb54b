# The command lines, the C API of the compiler, the examples, and an installed copy, from the outside.
if(TIGA_COMPILER)
  set(cli_dir ${CMAKE_CURRENT_SOURCE_DIR}/cli)
  add_executable(cache_fill ${cli_dir}/cache_fill.c) # for test_cache.py
  target_link_libraries(cache_fill PRIVATE runtime)
  foreach(test tigac tiga traffic cache examples programs large install)
    add_test(NAME cli.${test} COMMAND ${TIGA_PYTHON} -m unittest -q test_${test} WORKING_DIRECTORY ${cli_dir})
    set_tests_properties(cli.${test} PROPERTIES TIMEOUT 600 LABELS cli ENVIRONMENT
      "TIGA_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1;TIGA_SANITIZE=${TIGA_SANITIZE}")
  endforeach()

  # the example of a C host, and the programs behind bench/latency.py and tensor.py: what is built is what is shown
  foreach(program examples/jit bench/latency bench/tensor)
    string(REPLACE "/" "_" name ${program})
    string(REPLACE "examples_" "example_" name ${name})
    add_executable(${name} ${PROJECT_SOURCE_DIR}/${program}.c)
    target_link_libraries(${name} PRIVATE Tiga::tigac Tiga::tiga)
    target_compile_options(${name} PRIVATE ${TIGA_WARNINGS})
  endforeach()

  add_executable(test_driver_compiler ${cli_dir}/test_compiler.c)
  target_link_libraries(test_driver_compiler PRIVATE Tiga::tigac Tiga::tiga PkgConfig::CRITERION Threads::Threads
                                                     ${CMAKE_DL_LIBS})
  target_compile_options(test_driver_compiler PRIVATE ${TIGA_WARNINGS})
  add_test(NAME cli.compiler COMMAND test_driver_compiler --quiet)
  set_tests_properties(cli.compiler PROPERTIES TIMEOUT 600 LABELS cli)

  add_test(NAME cli.lint COMMAND ${TIGA_PYTHON} ${PROJECT_SOURCE_DIR}/tests/lint/lint.py --no-format --build ${CMAKE_BINARY_DIR})
  set_tests_properties(cli.lint PROPERTIES TIMEOUT 600 LABELS cli)
endif()
