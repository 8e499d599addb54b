# Random programs, every way there is: see diff.h.
if(TIGA_COMPILER)
  file(GLOB diff_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
  add_executable(diff_test ${diff_sources} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_sim/sim_loop.c)
  target_include_directories(diff_test PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(diff_test PRIVATE ir Tiga::tiga Tiga::tigac cuda_sim)
  target_compile_options(diff_test PRIVATE ${TIGA_WARNINGS})
  # Two halves, so that both cores have one.
  add_test(NAME diff.first COMMAND diff_test --seed 1000 --functions 600)
  add_test(NAME diff.second COMMAND diff_test --seed 2000 --functions 600)
  add_test(NAME diff.cuda COMMAND diff_test --seed 3000 --functions 200 --cuda)
  set_tests_properties(diff.first diff.second diff.cuda PROPERTIES TIMEOUT 900 LABELS diff)
endif()
