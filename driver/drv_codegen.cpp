// From a module of LLVM's to an object at -O1 and -O2: few of the passes that Clang would run.
//
// Kernels come in vectors, unrolled, and with their loops in the order they are to run, so most of -O2 finds nothing in
// them.  What is left to do: helpers are inlined, values live in registers, what does not change leaves the loops.  The
// code generator's own rewriting of addresses in loops is left out as well: an instruction adds a base and an index
// anyway, and short loops lose more at their heads than they win inside.  So is what no emitted C can have any use for; in a
// module of hundreds of kernels, asking costs.
#include "driver/drv_codegen.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Vectorize/SLPVectorizer.h"

#include <memory>
#include <mutex>

namespace {

// ---- target machines, kept -----------------------------------------------------------------------------------------

// Making one takes a millisecond, because it reads the list of features.  It serves one compile at a time.
struct kept_machine {
    std::string key;
    std::unique_ptr<llvm::LLVMTargetMachine> tm;
};

constexpr size_t MOST_KEPT = 8;
std::mutex kept_lock;

std::vector<kept_machine> &kept() {
    static auto *list = new std::vector<kept_machine>; // never destroyed: threads may outlive main
    return *list;
}

std::unique_ptr<llvm::LLVMTargetMachine> new_machine(const drv_machine &machine, std::string &error) {
    const llvm::Target *target = llvm::TargetRegistry::lookupTarget(machine.triple, error);
    if (!target)
        return nullptr;
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    options.UseInitArray = true;
    auto level = machine.opt_level > 1 ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Less;
    llvm::TargetMachine *tm =
        target->createTargetMachine(machine.triple, machine.cpu, llvm::join(machine.features, ","), options,
                                    llvm::Reloc::PIC_, std::nullopt, level);
    if (!tm)
        error = "no code generator for " + machine.triple;
    return std::unique_ptr<llvm::LLVMTargetMachine>(static_cast<llvm::LLVMTargetMachine *>(tm));
}

// A lock that somebody holds is not waited for: after a fork nobody might ever let go of it.
kept_machine take_machine(const drv_machine &machine, std::string &error) {
    kept_machine k = {machine.cpu + " " + std::to_string(machine.opt_level), nullptr};
    for (const std::string &f : machine.features)
        k.key += " " + f;
    if (std::unique_lock<std::mutex> guard(kept_lock, std::try_to_lock); guard)
        for (kept_machine &one : kept())
            if (one.tm && one.key == k.key) {
                k.tm = std::move(one.tm);
                return k;
            }
    k.tm = new_machine(machine, error);
    return k;
}

void give_machine(kept_machine &&k) {
    std::unique_lock<std::mutex> guard(kept_lock, std::try_to_lock);
    if (!guard)
        return;
    for (kept_machine &one : kept())
        if (!one.tm) {
            one = std::move(k);
            return;
        }
    if (kept().size() < MOST_KEPT)
        kept().push_back(std::move(k));
}

// ---- passes --------------------------------------------------------------------------------------------------------

// Takes the loops of a helper apart that have one block and call nothing: those over the elements of a vector.  Done in
// each of its callers it would cost the square of their number.
struct unroll_elements : public llvm::PassInfoMixin<unroll_elements> {
    explicit unroll_elements(int opt_level) : unroll(opt_level) {}
    llvm::PreservedAnalyses run(llvm::Loop &loop, llvm::LoopAnalysisManager &lam, llvm::LoopStandardAnalysisResults &ar,
                                llvm::LPMUpdater &updater) {
        if (loop.getNumBlocks() != 1)
            return llvm::PreservedAnalyses::all();
        for (const llvm::Instruction &i : *loop.getHeader())
            if (llvm::isa<llvm::CallBase>(i) && !llvm::isa<llvm::IntrinsicInst>(i))
                return llvm::PreservedAnalyses::all();
        return unroll.run(loop, lam, ar, updater);
    }

  private:
    llvm::LoopFullUnrollPass unroll;
};

// Helpers small enough go into their callers; for that their size is that of what they do.
llvm::FunctionPassManager for_helpers(int opt_level) {
    llvm::FunctionPassManager f;
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass());
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopRotatePass()));
    f.addPass(llvm::createFunctionToLoopPassAdaptor(unroll_elements(opt_level)));
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass());
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::SLPVectorizerPass());
    return f;
}

// LLVM looks a long time at loops before it leaves them alone: those of vectors already, and those that prefetch.
bool may_vectorise(const llvm::Loop &loop) {
    for (const llvm::BasicBlock *block : loop.blocks())
        for (const llvm::Instruction &i : *block) {
            const auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
            if (i.getType()->isVectorTy() || (call && call->getIntrinsicID() == llvm::Intrinsic::prefetch))
                return false;
        }
    return true;
}

struct vectorise_loops : public llvm::PassInfoMixin<vectorise_loops> {
    llvm::PreservedAnalyses run(llvm::Function &f, llvm::FunctionAnalysisManager &fam) {
        for (const llvm::Loop *loop : fam.getResult<llvm::LoopAnalysis>(f).getLoopsInPreorder())
            if (loop->isInnermost() && may_vectorise(*loop))
                return vectorise.run(f, fam);
        return llvm::PreservedAnalyses::all();
    }

  private:
    llvm::LoopVectorizePass vectorise;
};

// Loops of a constant few steps are unrolled, because arrays that live in registers wait for it; what has no vectors yet
// and could have gets them.
llvm::FunctionPassManager for_kernels(int opt_level) {
    llvm::FunctionPassManager f;
    llvm::LoopPassManager hoist;
    hoist.addPass(llvm::LoopRotatePass());
    hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
    f.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopFullUnrollPass(opt_level)));
    f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
    f.addPass(vectorise_loops());
    f.addPass(llvm::SLPVectorizerPass());
    f.addPass(llvm::GVNPass()); // before them it would take loads of whole vectors apart
    f.addPass(llvm::InstCombinePass());
    f.addPass(llvm::SimplifyCFGPass());
    f.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    return f;
}

void run_on(llvm::Module &m, llvm::FunctionPassManager passes, llvm::FunctionAnalysisManager &fam,
            bool (*wanted)(const llvm::Function &), drv_stop *stop) {
    for (llvm::Function &f : m)
        if (!f.isDeclaration() && !f.hasOptNone() && wanted(f) && !drv_stop_asked(stop))
            fam.invalidate(f, passes.run(f, fam));
}

// What LLVM's own pass does in one go for the whole module, a call at a time.
void inline_always(llvm::Module &m, drv_stop *stop) {
    std::vector<llvm::CallBase *> calls;
    for (llvm::Function &f : llvm::make_early_inc_range(m)) {
        if (f.isDeclaration() || !f.hasFnAttribute(llvm::Attribute::AlwaysInline) ||
            !llvm::isInlineViable(f).isSuccess())
            continue;
        calls.clear();
        for (llvm::User *u : f.users())
            if (auto *call = llvm::dyn_cast<llvm::CallBase>(u); call && call->getCalledFunction() == &f)
                calls.push_back(call);
        for (llvm::CallBase *call : calls) {
            if (drv_stop_asked(stop))
                return;
            llvm::InlineFunctionInfo info;
            llvm::InlineFunction(*call, info, /*MergeAttributes=*/true, nullptr, /*InsertLifetime=*/false);
        }
        f.removeDeadConstantUsers();
        if (f.isDefTriviallyDead())
            f.eraseFromParent();
    }
}

bool is_helper(const llvm::Function &f) {
    return f.hasFnAttribute(llvm::Attribute::InlineHint) || f.hasFnAttribute(llvm::Attribute::AlwaysInline);
}
bool is_any(const llvm::Function &) { return true; }

void optimise(llvm::Module &m, llvm::TargetMachine &tm, const llvm::TargetLibraryInfoImpl &library,
              const drv_machine &machine) {
    llvm::LoopAnalysisManager lam;
    llvm::FunctionAnalysisManager fam;
    llvm::CGSCCAnalysisManager cam;
    llvm::ModuleAnalysisManager mam;
    llvm::PassInstrumentationCallbacks watch; // passes that are still to come are left out
    if (machine.stop)
        watch.registerShouldRunOptionalPassCallback(
            [&](llvm::StringRef, llvm::Any) { return !drv_stop_asked(machine.stop); });
    llvm::PassBuilder builder(&tm, llvm::PipelineTuningOptions(), std::nullopt, &watch);
    fam.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(mam);
    builder.registerCGSCCAnalyses(cam);
    builder.registerFunctionAnalyses(fam);
    builder.registerLoopAnalyses(lam);
    builder.crossRegisterProxies(lam, fam, cam, mam);
    llvm::ModulePassManager inlining;
    inlining.addPass(llvm::createModuleToPostOrderCGSCCPassAdaptor(llvm::InlinerPass()));
    inlining.addPass(llvm::GlobalDCEPass());
    run_on(m, for_helpers(machine.opt_level), fam, is_helper, machine.stop);
    inline_always(m, machine.stop);
    if (!drv_stop_asked(machine.stop))
        inlining.run(m, mam);
    run_on(m, for_kernels(machine.opt_level), fam, is_any, machine.stop);
}

// Passes of the code generator cannot be left out, but a function without a body costs them nothing: once the compile is given
// up, those that are still to come lose theirs.
class give_up : public llvm::FunctionPass {
  public:
    static char ID;
    explicit give_up(drv_stop *stop) : FunctionPass(ID), stop(stop) {}
    bool runOnFunction(llvm::Function &f) override {
        if (!drv_stop_asked(stop))
            return false;
        f.dropAllReferences();
        new llvm::UnreachableInst(f.getContext(), llvm::BasicBlock::Create(f.getContext(), "", &f));
        return true;
    }
    llvm::StringRef getPassName() const override { return "Give up when the compile is interrupted"; }

  private:
    drv_stop *stop;
};
char give_up::ID;

// Passes of the code generator that are not run: the first two rewrite addresses in loops; for the rest, emitted C has no
// exceptions, no collected garbage, no threads' own variables, no jumps to computed addresses, no numbers wider than
// registers and no matrices in tiles; it compares no memory, and nobody asked for debug values, instrumentation or protection
// against speculation.
bool is_left_out(llvm::StringRef name) {
    static const llvm::StringRef names =
        " loop-reduce canon-freeze mergeicmps expand-memcmp consthoist tlshoist indirectbr-expand "
        "callbrprepare dwarf-eh-prepare gc-lowering shadow-stack-gc-lowering gc-analysis "
        "fixup-statepoint-caller-saved stackmap-liveness expand-large-div-rem expand-large-fp-convert "
        "lower-amx-intrinsics lower-amx-type tilepreconfig lowertilecopy removeredundantdebugvalues "
        "livedebugvalues stack-frame-layout machine-sanmd pseudo-probe-inserter safe-stack fentry-insert "
        "xray-instrumentation patchable-function funclet-layout kcfi x86-slh x86-lvi-load x86-lvi-ret "
        "x86-seses x86-return-thunks ";
    return !name.empty() && names.contains((" " + name + " ").str());
}

// The code generator's own list, without what was left out on purpose.  Each function goes all the way from its last pass
// over IR to machine code before the next begins.
class pass_list : public llvm::legacy::PassManager {
  public:
    explicit pass_list(drv_stop *stop) : stop(stop) {}
    void add(llvm::Pass *p) override {
        const llvm::PassInfo *info = llvm::PassRegistry::getPassRegistry()->getPassInfo(p->getPassID());
        llvm::StringRef name = info ? info->getPassArgument() : "";
        if (is_left_out(name)) {
            delete p;
            return;
        }
        if (name == "codegenprepare" && stop)
            PassManager::add(new give_up(stop));
        PassManager::add(p);
    }

  private:
    drv_stop *stop;
};

bool generate(llvm::Module &m, llvm::LLVMTargetMachine &tm, const llvm::TargetLibraryInfoImpl &library, drv_stop *stop,
              llvm::SmallVectorImpl<char> &object) {
    llvm::raw_svector_ostream out(object);
    pass_list passes(stop);
    passes.add(llvm::createTargetTransformInfoWrapperPass(tm.getTargetIRAnalysis()));
    passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
    auto *info = new llvm::MachineModuleInfoWrapperPass(&tm);
    llvm::TargetPassConfig *config = tm.createPassConfig(passes);
    config->setDisableVerify(true);
    passes.add(config);
    passes.add(info);
    if (stop)
        passes.add(new give_up(stop));
    if (config->addISelPasses())
        return false;
    config->addMachinePasses();
    config->setInitialized();
    if (tm.addAsmPrinter(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile, info->getMMI().getContext()))
        return false;
    passes.add(llvm::createFreeMachineFunctionPass());
    passes.run(m);
    return true;
}

// Without it LLVM would print its errors and end the process.
struct collector : public llvm::DiagnosticHandler {
    explicit collector(std::string &text) : text(text) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &d) override {
        if (d.getSeverity() != llvm::DS_Error)
            return true;
        llvm::raw_string_ostream out(text);
        llvm::DiagnosticPrinterRawOStream printer(out);
        d.print(printer);
        return true;
    }
    std::string &text;
};

} // namespace

std::string drv_codegen(llvm::Module &m, const drv_machine &machine, llvm::SmallVectorImpl<char> &object) {
    std::string error;
    kept_machine k = take_machine(machine, error);
    if (!k.tm)
        return error;
    m.getContext().setDiagnosticHandler(std::make_unique<collector>(error));
    llvm::TargetLibraryInfoImpl library{llvm::Triple(machine.triple)};
    optimise(m, *k.tm, library, machine);
    if (!drv_stop_asked(machine.stop) && !generate(m, *k.tm, library, machine.stop, object) && error.empty())
        error = "the code generator of " + machine.triple + " writes no objects";
    m.getContext().setDiagnosticHandler(nullptr);
    give_machine(std::move(k));
    return error;
}
