# Random programs, every way there is: see diff.h.
if(TIGA_COMPILER AND TARGET cuda_sim)
  file(GLOB diff_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
  add_executable(diff_test ${diff_sources} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_sim/sim_loop.c)
  target_include_directories(diff_test PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR} ${TIGA_INCLUDE_ROOTS}/runtime)
  target_link_libraries(diff_test PRIVATE ir Tiga::tiga Tiga::tigac cuda_sim)
  target_compile_options(diff_test PRIVATE ${TIGA_WARNINGS})
  # Two halves, so that both cores have one.
  set(cuda --cuda)
  set(functions 560)
  if(TIGA_SANITIZE) # ten times slower; and the simulator's text is not instrumented
    set(cuda)
    set(functions 80)
  endif()
  add_test(NAME diff.first COMMAND diff_test --seed 1000 --functions ${functions} ${cuda})
  add_test(NAME diff.second COMMAND diff_test --seed 2000 --functions ${functions} ${cuda})
  set_tests_properties(diff.first diff.second PROPERTIES TIMEOUT 1800 LABELS diff)

  set(gradients 100)
  if(TIGA_SANITIZE)
    set(gradients 30)
  endif()
  add_test(NAME diff.gradients COMMAND diff_test --gradients --seed 3000 --functions ${gradients} ${cuda})
  set_tests_properties(diff.gradients PROPERTIES TIMEOUT 1800 LABELS diff)

  # The C of a batch under other compilers than the one inside, as C11 and as C++17, with warnings as errors.
  add_test(NAME diff.compilers COMMAND ${CMAKE_CURRENT_LIST_DIR}/compilers.sh $<TARGET_FILE:diff_test> 4000)
  set_tests_properties(diff.compilers PROPERTIES TIMEOUT 600 LABELS diff)
endif()
