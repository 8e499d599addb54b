target_link_libraries(${name} PUBLIC PkgConfig::XXHASH m)
target_compile_definitions(${name} PRIVATE _GNU_SOURCE) # renameat2
