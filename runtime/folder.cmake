find_package(ZLIB REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
target_link_libraries(${name} PUBLIC ZLIB::ZLIB PkgConfig::LIBZIP Threads::Threads ${CMAKE_DL_LIBS} m)
target_compile_definitions(${name} PRIVATE _GNU_SOURCE TIGA_VERSION="${PROJECT_VERSION}")
