target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson) # headers of snapshots
target_link_libraries(${name} PUBLIC PkgConfig::JANSSON)
