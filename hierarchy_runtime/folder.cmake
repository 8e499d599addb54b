target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
