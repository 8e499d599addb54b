# The Clang, LLVM and LLD 19 libraries as one target, tiga_llvm.
#
# TIGA_LLVM=static (default): linked in, sections nobody calls dropped.  A deployed libtigac needs no LLVM package, meets no
# other LLVM of the process, and starts about 20 ms sooner (measured: 40 against 60 ms for a small file).
# TIGA_LLVM=shared: against libclang-cpp.so and libLLVM.so.
set(TIGA_LLVM static CACHE STRING "link LLVM and Clang: static or shared")
set_property(CACHE TIGA_LLVM PROPERTY STRINGS static shared)

find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
find_package(ZLIB REQUIRED)
find_library(TIGA_ZSTD zstd REQUIRED)

add_library(tiga_llvm INTERFACE)
target_include_directories(tiga_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_options(tiga_llvm INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti -fno-exceptions>)
target_link_directories(tiga_llvm INTERFACE ${LLVM_LIBRARY_DIR})
target_link_libraries(tiga_llvm INTERFACE lldELF lldCommon)

if(TIGA_LLVM STREQUAL "shared")
  target_link_libraries(tiga_llvm INTERFACE clang-cpp LLVM-19)
else()
  string(TOLOWER ${LLVM_NATIVE_ARCH} arch)
  execute_process(
    COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libs ${arch} lto option passes jitlink windowsdriver coverage
            frontendopenmp frontendhlsl frontenddriver
    OUTPUT_VARIABLE llvm_libs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(llvm_libs)
  list(FILTER llvm_libs EXCLUDE REGEX "Polly") # see below
  foreach(part CodeGen Frontend Driver Serialization Parse Sema APINotes Edit Analysis ASTMatchers AST Support Lex Basic)
    target_link_libraries(tiga_llvm INTERFACE clang${part})
  endforeach()
  target_link_libraries(tiga_llvm INTERFACE ${llvm_libs})

  # LLD registers every target LLVM was built with, and Debian's Clang registers Polly: empty functions in their place
  # keep 60 MB of other processors' code generators out.
  set(stubs "#include \"llvm/Passes/PassPlugin.h\"\n")
  foreach(target ${LLVM_TARGETS_TO_BUILD} ${LLVM_EXPERIMENTAL_TARGETS_TO_BUILD})
    if(NOT target STREQUAL LLVM_NATIVE_ARCH)
      foreach(kind TargetInfo Target TargetMC AsmPrinter AsmParser)
        string(APPEND stubs "extern \"C\" void LLVMInitialize${target}${kind}() {}\n")
      endforeach()
    endif()
  endforeach()
  string(APPEND stubs "llvm::PassPluginLibraryInfo getPollyPluginInfo() {\n"
         "    return {LLVM_PLUGIN_API_VERSION, \"none\", \"0\", [](llvm::PassBuilder &) {}};\n}\n")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/llvm_stubs.cpp CONTENT "${stubs}" @ONLY)
  add_library(tiga_llvm_stubs OBJECT ${CMAKE_BINARY_DIR}/generated/llvm_stubs.cpp)
  target_include_directories(tiga_llvm_stubs SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_options(tiga_llvm_stubs PRIVATE -fno-rtti -fno-exceptions)
  target_sources(tiga_llvm INTERFACE $<TARGET_OBJECTS:tiga_llvm_stubs>)
endif()
target_link_libraries(tiga_llvm INTERFACE ZLIB::ZLIB ${TIGA_ZSTD})

# GNU ld needs ten times as long for these archives.
find_program(TIGA_LD_LLD ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
if(TIGA_LD_LLD)
  get_filename_component(lld_folder ${TIGA_LD_LLD} DIRECTORY)
  target_link_options(tiga_llvm INTERFACE -fuse-ld=lld -B${lld_folder})
endif()
