target_link_libraries(${name} PUBLIC PkgConfig::XXHASH m)
