// Processors by name, and which of their instructions code made from C loops may use.
#include "driver/drv_clang.h"
#include "driver/drv_llvm.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#if defined(__x86_64__)
#include "llvm/TargetParser/X86TargetParser.h"
#endif

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

void drv_llvm_init() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        llvm::InitializeNativeTargetAsmParser();
    });
}

std::string drv_triple() { return llvm::sys::getDefaultTargetTriple(); }

namespace {

#if !defined(__x86_64__)
const char *baseline_cpu() { return "generic"; }

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(llvm::StringRef cpu, llvm::StringRef switches) {
    std::string error;
    const llvm::Target *target = llvm::TargetRegistry::lookupTarget(drv_triple(), error);
    if (!target)
        return nullptr;
    return std::unique_ptr<llvm::MCSubtargetInfo>(target->createMCSubtargetInfo(drv_triple(), cpu, switches));
}
#endif

#if defined(__x86_64__)
// Could code made from C loops contain it?  Not the ones for systems, and not the ones only intrinsics reach.
bool is_used_by_loops(llvm::StringRef f) {
    static const std::set<std::string> others = {"adx",  "bmi",   "bmi2",  "f16c",   "fma", "fma4",
                                                 "gfni", "lzcnt", "movbe", "popcnt", "tbm", "xop"};
    if (f == "sse" || f == "sse2")
        return false; // plain x86-64
    return f.starts_with("sse") || f.starts_with("ssse") || f.starts_with("avx") || others.count(f.str());
}
#endif

// Features beyond the baseline that code for this processor may use, with what they imply.
std::set<std::string> features_of(const drv_cpu &cpu) {
    std::set<std::string> have;
#if defined(__x86_64__)
    llvm::SmallVector<llvm::StringRef, 64> list;
    if (cpu.switches.len)
        llvm::StringRef(base_str_text(&cpu.switches)).split(list, ',', -1, false);
    else
        llvm::X86::getFeaturesForCPU(base_str_text(&cpu.name), list, /*NeedPlus=*/true);
    llvm::StringMap<bool> full;
    for (llvm::StringRef f : list) {
        if (!f.consume_front("+"))
            continue;
        full[f] = true;
        llvm::X86::updateImpliedFeatures(f, true, full);
    }
    for (const auto &f : full)
        if (f.second && is_used_by_loops(f.first()))
            have.insert(f.first().str());
#else
    auto plain = subtarget(baseline_cpu(), "");
    auto full = subtarget(base_str_text(&cpu.name), base_str_text(&cpu.switches));
    if (!plain || !full)
        return have;
    for (const auto &f : full->getEnabledProcessorFeatures())
        have.insert(f.Key);
    for (const auto &f : plain->getEnabledProcessorFeatures())
        have.erase(f.Key);
#endif
    return have;
}

std::vector<std::string> known_cpus() {
    std::vector<std::string> names;
#if defined(__x86_64__)
    llvm::SmallVector<llvm::StringRef, 64> list;
    llvm::X86::fillValidCPUArchList(list, /*Only64Bit=*/true);
    for (llvm::StringRef n : list)
        names.push_back(n.str());
#else
    if (auto any = subtarget(baseline_cpu(), ""))
        for (const auto &d : any->getAllProcessorDescriptions())
            names.push_back(d.Key);
#endif
    return names;
}

bool is_known_cpu(const char *name, base_str *err) {
    std::vector<std::string> names = known_cpus();
    const std::string *nearest = nullptr;
    size_t best = 4;
    for (const std::string &n : names) {
        if (n == name)
            return true;
        size_t d = base_edit_distance(n.c_str(), name);
        if (d < best)
            best = d, nearest = &n;
    }
    base_str_addf(err, "unknown processor '%s'", name);
    if (nearest)
        base_str_addf(err, "; did you mean '%s'?", nearest->c_str());
    base_str_add(err, " known: native");
    for (const std::string &n : names)
        base_str_addf(err, " %s", n.c_str());
    return false;
}

} // namespace

bool drv_cpu_resolve(const char *name, drv_cpu *out, base_str *err) {
    drv_llvm_init();
    *out = drv_cpu{};
    if (!name || !strcmp(name, "native")) {
        drv_put(&out->name, llvm::sys::getHostCPUName());
        std::set<std::string> sorted; // the map has no order of its own; the same text on every run
        for (const auto &f : llvm::sys::getHostCPUFeatures())
            sorted.insert((f.second ? "+" : "-") + f.first().str());
        for (const std::string &f : sorted) {
            if (out->switches.len)
                base_str_add(&out->switches, ",");
            drv_put(&out->switches, f);
        }
    } else {
        if (!is_known_cpu(name, err))
            return false;
        base_str_add(&out->name, name);
    }
    for (const std::string &f : features_of(*out)) {
        if (out->features.len)
            base_str_add(&out->features, ",");
        drv_put(&out->features, f);
    }
    return true;
}

void drv_cpu_fini(drv_cpu *cpu) {
    base_str_fini(&cpu->name);
    base_str_fini(&cpu->switches);
    base_str_fini(&cpu->features);
}
