# cmake --install: libraries, tools, headers, find_package(Tiga) with Tiga::tiga and Tiga::tigac, tiga.pc and tigac.pc.
include(CMakePackageConfigHelpers)

set(targets tiga_shared tiga_cli)
set(has_compiler OFF)
if(TIGA_COMPILER)
  list(APPEND targets tigac_shared tigac_cli)
  set(has_compiler ON)
endif()
install(TARGETS ${targets} EXPORT TigaTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tiga DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tiga)
install(EXPORT TigaTargets NAMESPACE Tiga:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TigaConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/TigaConfig.cmake
                              INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/TigaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/TigaConfig.cmake ${CMAKE_BINARY_DIR}/generated/TigaConfigVersion.cmake
        DESTINATION ${package_folder})

# pkg-config files find their prefix from where they lie, so an installed tree can be moved.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
foreach(name tiga tigac)
  if(name STREQUAL tiga OR TIGA_COMPILER)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/generated/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/generated/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()

# The Python package: beside the libraries (PYTHONPATH=PREFIX/lib/python), or all of it in one folder in a wheel.
set(python_package ${CMAKE_INSTALL_LIBDIR}/python/tiga)
if(SKBUILD)
  set(python_package tiga)
  foreach(target tiga_shared tigac_shared)
    # a wheel has no links, so the name that programs ask for is that of the file
    set_target_properties(${target} PROPERTIES VERSION 0 INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${target} LIBRARY DESTINATION tiga/lib COMPONENT python NAMELINK_SKIP)
  endforeach()
else()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/tiga DESTINATION ${CMAKE_INSTALL_LIBDIR}/python
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN __pycache__ EXCLUDE)
endif()
if(TARGET tiga_python)
  install(TARGETS tiga_python LIBRARY DESTINATION ${python_package} COMPONENT python)
endif()
