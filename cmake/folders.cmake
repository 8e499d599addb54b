# One static library a folder.  A folder sees only the headers of the folders it may include: each gets an include root
# of its own that holds one link, so `#include "passes/passes.h"` in runtime/ does not compile.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

set(TIGA_WARNINGS -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wno-sign-compare)
# Errors where we know every warning; elsewhere a new compiler's new opinion must not stop a user's build.
set(TIGA_WERROR AUTO CACHE STRING "warnings are errors: ON, OFF or AUTO (gcc 12, clang 19)")
set(known_compiler OFF)
if((CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12 AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_C_COMPILER_ID STREQUAL Clang AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 19 AND CMAKE_C_COMPILER_VERSION VERSION_LESS 20))
  set(known_compiler ON)
endif()
if(TIGA_WERROR STREQUAL ON OR (TIGA_WERROR STREQUAL AUTO AND known_compiler))
  add_compile_options(-Werror)
endif()
set(TIGA_INCLUDE_ROOTS ${CMAKE_BINARY_DIR}/include_roots)

if(TIGA_SANITIZE)
  add_compile_options(-fsanitize=${TIGA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TIGA_SANITIZE})
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # its warnings see null pointers in the instrumented code
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wno-format-truncation>)
  endif()
endif()

add_library(tiga_public INTERFACE) # include/tiga
target_include_directories(tiga_public INTERFACE ${PROJECT_SOURCE_DIR}/include)

function(tiga_folder name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c)
  file(MAKE_DIRECTORY ${TIGA_INCLUDE_ROOTS}/${name})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${TIGA_INCLUDE_ROOTS}/${name}/${name} SYMBOLIC)
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(${name} PRIVATE ${TIGA_WARNINGS})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${TIGA_INCLUDE_ROOTS}/${name})
  target_link_libraries(${name} ${scope} tiga_public ${ARG_DEPENDS})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${name}/folder.cmake)
    include(${PROJECT_SOURCE_DIR}/${name}/folder.cmake) # libraries and generated files of this folder
  endif()
endfunction()
