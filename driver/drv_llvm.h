// What the C++ files of this folder share.
#ifndef DRV_LLVM_H
#define DRV_LLVM_H

#include "base/base.h"

#include "llvm/ADT/StringRef.h"

#include <string>

void drv_llvm_init(); // the code generator of this machine; once, from any thread
std::string drv_triple(); // of this machine
inline void drv_put(base_str *out, llvm::StringRef text) { base_str_add_n(out, text.data(), text.size()); }

#endif
