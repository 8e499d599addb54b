# The simulated CUDA device, and what runs on it.  Its hooks are those of -fsanitize=thread, so a build that uses that
# sanitizer itself leaves the group out.
if(NOT TIGA_SANITIZE MATCHES "thread")
  set(sim_dir ${CMAKE_CURRENT_SOURCE_DIR}/cuda_sim)
  add_library(cuda_sim SHARED ${sim_dir}/sim_core.c ${sim_dir}/sim_fiber.c ${sim_dir}/sim_warp.c ${sim_dir}/sim_memory.c
                              ${sim_dir}/sim_build.c)
  target_include_directories(cuda_sim PUBLIC ${sim_dir})
  target_compile_options(cuda_sim PRIVATE -Wall -Wextra -Wshadow -Wswitch-enum -Wno-sign-compare)
  target_compile_definitions(cuda_sim PRIVATE CUDA_SIM_HEADER="${sim_dir}/cuda_sim.h")
  target_link_libraries(cuda_sim PRIVATE dl)

  add_executable(test_cuda_sim ${sim_dir}/test_sim.c)
  target_link_libraries(test_cuda_sim PRIVATE cuda_sim PkgConfig::CRITERION)
  target_compile_definitions(test_cuda_sim PRIVATE SIM_WORK_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME cuda_sim.device COMMAND test_cuda_sim --quiet)
  set_tests_properties(cuda_sim.device PROPERTIES TIMEOUT 600 LABELS cuda_sim)

  # emitted kernels on it, and through NVRTC
  add_executable(test_cuda_emitted ${sim_dir}/test_emitted.c ${sim_dir}/emitted.c ${sim_dir}/sim_loop.c)
  add_executable(test_cuda_nvrtc ${sim_dir}/test_nvrtc.c ${sim_dir}/emitted.c ${PROJECT_SOURCE_DIR}/driver/drv_nvrtc.c
                                 ${PROJECT_SOURCE_DIR}/driver/drv_cubin.c)
  target_link_libraries(test_cuda_emitted PRIVATE cuda_sim)
  target_include_directories(test_cuda_nvrtc PRIVATE ${TIGA_INCLUDE_ROOTS}/driver)
  foreach(test emitted nvrtc)
    target_link_libraries(test_cuda_${test} PRIVATE frontend passes codegen PkgConfig::CRITERION ${CMAKE_DL_LIBS})
    target_compile_definitions(test_cuda_${test} PRIVATE SIM_WORK_DIR="${CMAKE_BINARY_DIR}"
                                                         TIGA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME cuda_sim.${test} COMMAND test_cuda_${test} --quiet)
    set_tests_properties(cuda_sim.${test} PROPERTIES TIMEOUT 600 LABELS cuda_sim)
  endforeach()
  # NVRTC's thread storage makes the leak checker itself fall over
  set_tests_properties(cuda_sim.nvrtc PROPERTIES
    ENVIRONMENT LSAN_OPTIONS=use_tls=0:suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0)
endif()
