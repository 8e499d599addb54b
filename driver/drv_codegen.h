// LLVM modules to objects, with passes chosen for what Tiga emits; for the C++ files of this folder.
#ifndef DRV_CODEGEN_H
#define DRV_CODEGEN_H

#include "driver/drv_stop.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

// What the code is for.
struct drv_machine {
    std::string triple, cpu;
    std::vector<std::string> features;
    int opt_level; // 1 or 2
    drv_stop *stop; // or null; when it was asked for, the object is not to be used
};

// Optimises the module and writes it as an object; from any thread.  The answer is empty, or what went wrong.
std::string drv_codegen(llvm::Module &m, const drv_machine &machine, llvm::SmallVectorImpl<char> &object);

#endif
