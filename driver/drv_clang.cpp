// Emitted C to LLVM IR or to objects, with Clang 19 (see drv_clang.h).  Holds no knowledge of Tiga but the flags its C is
// compiled with; which passes run at -O1 and -O2 says drv_codegen.cpp.
//
// Bits: floating point contraction is off, functions of mathematics are Tiga's own or one correctly rounded instruction, and
// fmod is compiled as an unknown call (-fno-builtin-NAME), so that LLVM does not fold it with the doubles of this process:
// what runs is libm's own result, the same that the interpreter computes.
#include "driver/drv_clang.h"
#include "driver/drv_codegen.h"
#include "driver/drv_llvm.h"

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/CodeGen/BackendUtil.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace {

// The one function of libm that is called by name (cg_libm) and has no instruction.
const char *const remainders[] = {"fmod", "fmodf"};

std::vector<std::string> clang_arguments(llvm::StringRef text, const drv_clang_options *o, const std::string &path) {
    std::vector<std::string> args = {
        "-triple",
        drv_triple(),
        o->kind == DRV_CLANG_OBJECT ? "-emit-obj" : "-emit-llvm",
        "-O" + std::to_string(o->opt_level),
        "-std=c11",
        "-DTIGA_FREESTANDING",
        "-nostdsysteminc",
        "-nobuiltininc",
        "-mrelocation-model",
        "pic",
        "-pic-level",
        "2",
        "-fhalf-no-semantic-interposition",
        "-fvisibility=hidden", // what the parts of a module share is nobody else's
        "-fgnuc-version=4.2.1", // as every clang on the command line says: vectors and builtins are there
        "-ffp-contract=off",
        "-main-file-name",
        path.substr(1),
        "-x",
        "c",
    };
    if (o->unwind)
        args.push_back("-funwind-tables=2");
    args.push_back("-disable-llvm-verifier"); // as a released clang does
    if (o->kind == DRV_CLANG_OBJECT)
        args.push_back("-discard-value-names");
    if (o->opt_level >= 2)
        args.insert(args.end(), {"-vectorize-loops", "-vectorize-slp"});
    args.insert(args.end(), {"-target-cpu", base_str_text(&o->cpu->name)});
    llvm::SmallVector<llvm::StringRef, 128> switches;
    llvm::StringRef(base_str_text(&o->cpu->switches)).split(switches, ',', -1, false);
    for (llvm::StringRef s : switches)
        args.insert(args.end(), {"-target-feature", s.str()});
    for (const char *f : remainders) // said only where it is called: every function and every call carries it
        if (text.contains(std::string(f) + "("))
            args.push_back(std::string("-fno-builtin-") + f);
    args.push_back(path);
    return args;
}

// Ends the reading of a text that nobody wants any more.
class give_up : public clang::ASTConsumer {
  public:
    explicit give_up(drv_stop *stop) : stop(stop) {}
    bool HandleTopLevelDecl(clang::DeclGroupRef) override { return !drv_stop_asked(stop); }

  private:
    drv_stop *stop;
};

class to_module : public clang::EmitLLVMOnlyAction {
  public:
    to_module(llvm::LLVMContext *context, drv_stop *stop) : EmitLLVMOnlyAction(context), stop(stop) {}

  protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &c, llvm::StringRef file) override {
        auto own = EmitLLVMOnlyAction::CreateASTConsumer(c, file);
        if (!own || !stop)
            return own;
        std::vector<std::unique_ptr<clang::ASTConsumer>> both;
        both.push_back(std::make_unique<give_up>(stop));
        both.push_back(std::move(own));
        return std::make_unique<clang::MultiplexConsumer>(std::move(both));
    }

  private:
    drv_stop *stop;
};

// A compiler set up for one text.
class compiler {
  public:
    compiler(llvm::StringRef text, const std::vector<std::string> &args, drv_stop *stop = nullptr)
        : stop(stop), stream(messages), printer(stream, new clang::DiagnosticOptions) {
        files->addFile(args.back(), 0, llvm::MemoryBuffer::getMemBuffer(text, args.back()));
        clang.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
        std::vector<const char *> raw;
        for (const std::string &a : args)
            raw.push_back(a.c_str());
        ready = clang::CompilerInvocation::CreateFromArgs(clang.getInvocation(), raw, clang.getDiagnostics());
        clang.setVerboseOutputStream(stream);
        clang.createFileManager(files);
    }
    bool run(clang::FrontendAction &action) {
        return ready && clang.ExecuteAction(action) && !clang.getDiagnostics().hasErrorOccurred();
    }
    // Optimises a module and writes it as an object, with the options of this compiler; from any thread.
    std::string emit(llvm::Module &m, llvm::SmallVectorImpl<char> &object) {
        unsigned level = clang.getCodeGenOpts().OptimizationLevel;
        if (level == 1 || level == 2) {
            const clang::TargetOptions &t = clang.getTargetOpts();
            return drv_codegen(m, {t.Triple, t.CPU, t.Features, int(level), stop}, object);
        }
        if (!stop)
            return emit_by_clang(m, clang::Backend_EmitObj, true, object);
        m.getContext().setOptPassGate(gate);
        std::string text = emit_by_clang(m, clang::Backend_EmitNothing, true, object);
        return drv_stop_asked(stop) ? text : text + emit_by_clang(m, clang::Backend_EmitObj, false, object);
    }
    // From text to object; the answer is empty, or what went wrong.
    std::string compile(llvm::SmallVectorImpl<char> &object) {
        llvm::LLVMContext context;
        to_module action(&context, stop);
        clang.getCodeGenOpts().DisableLLVMPasses = true; // emit() runs them
        clang.getCodeGenOpts().DisableLifetimeMarkers =
            true; // with them, a return out of a loop is a switch at every level
        if (!run(action))
            return explain();
        std::unique_ptr<llvm::Module> m = action.takeModule();
        return drv_stop_asked(stop) ? "interrupted" : emit(*m, object);
    }
    std::string explain() { return stream.str().empty() ? "clang failed without a message" : stream.str(); }
    clang::CompilerInstance clang;

  private:
    std::string emit_by_clang(llvm::Module &m, clang::BackendAction what, bool passes,
                              llvm::SmallVectorImpl<char> &object) {
        std::string text;
        llvm::raw_string_ostream out(text);
        clang::TextDiagnosticPrinter own(out, new clang::DiagnosticOptions);
        clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs, new clang::DiagnosticOptions, &own, false);
        clang::CodeGenOptions options = clang.getCodeGenOpts();
        options.DisableLLVMPasses = !passes;
        clang::EmitBackendOutput(diagnostics, clang.getHeaderSearchOpts(), options, clang.getTargetOpts(),
                                 clang.getLangOpts(), clang.getTarget().getDataLayoutString(), &m, what, files,
                                 std::make_unique<llvm::raw_svector_ostream>(object));
        return out.str();
    }

    // At -O0 and -O3, where Clang has the passes: those that may be left out are.
    struct stop_gate : public llvm::OptPassGate {
        explicit stop_gate(drv_stop *stop) : stop(stop) {}
        bool shouldRunPass(llvm::StringRef, llvm::StringRef) override { return !drv_stop_asked(stop); }
        bool isEnabled() const override { return true; }
        drv_stop *stop;
    };
    drv_stop *stop;
    stop_gate gate{stop};
    llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files =
        llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
    std::string messages;
    llvm::raw_string_ostream stream;
    clang::TextDiagnosticPrinter printer;
    bool ready = false;
};

} // namespace

bool drv_clang_compile(const char *text, size_t n, const drv_clang_options *o, base_str *out, base_str *err) {
    drv_llvm_init();
    std::string source(text, n);
    llvm::SmallVector<char, 0> bytes;
    compiler c(source, clang_arguments(source, o, std::string("/") + o->name));
    std::string why;
    if (o->kind == DRV_CLANG_OBJECT) {
        why = c.compile(bytes);
    } else {
        c.clang.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(bytes));
        clang::EmitLLVMAction ir;
        why = c.run(ir) ? "" : c.explain();
    }
    drv_put(err, why);
    base_str_add_n(out, bytes.data(), bytes.size());
    return why.empty() && !out->failed;
}

// ---- C texts to objects, on as many threads as are of use -----------------------------------------------------------

namespace {

using object_bytes = llvm::SmallVector<char, 0>;

// The answer is empty, or what went wrong.
std::string compile_text(const drv_bytes &text, const drv_clang_options *o, object_bytes &object) {
    std::string source(text.data, text.n);
    compiler c(source, clang_arguments(source, o, std::string("/") + o->name), o->stop);
    return c.compile(object);
}

// Each text is compiled by whoever is free; what comes out does not depend on who that was.
struct work {
    const drv_bytes *texts;
    size_t n;
    const drv_clang_options *o;
    object_bytes *objects;
    std::vector<std::string> messages;
    std::atomic<size_t> next = 0;
};

void *compile_some(void *work_) {
    auto *w = static_cast<work *>(work_);
    for (size_t i; (i = w->next++) < w->n && !drv_stop_asked(w->o->stop);)
        w->messages[i] = compile_text(w->texts[i], w->o, w->objects[i]);
    return nullptr;
}

// Asks on: who calls may be the only thread that can tell.
void wait_for(pthread_t thread, drv_stop *stop) {
    timespec until;
    do {
        drv_stop_asked(stop);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    } while (pthread_timedjoin_np(thread, nullptr, &until) == ETIMEDOUT);
}

// Threads that help compiles, of all contexts and calls of the process together: with one caller as many as are of use.
class helpers {
  public:
    static bool take() {
        uint64_t now = state;
        for (;;) {
            uint64_t count = now >> 32 == self() ? now & 0xffffffff : 0; // a child of fork has none of its parent's
            if (count + 1 >= uint64_t(base_default_threads()))
                return false;
            if (state.compare_exchange_weak(now, self() << 32 | (count + 1)))
                return true;
        }
    }
    static void give() { state--; }

  private:
    static uint64_t self() { return uint64_t(getpid()); }
    static std::atomic<uint64_t> state; // the process, and how many
};
std::atomic<uint64_t> helpers::state;

bool compile_all(const drv_bytes *texts, size_t n, const drv_clang_options *o, object_bytes *objects, base_str *err) {
    work w = {texts, n, o, objects, std::vector<std::string>(n)};
    std::vector<pthread_t> others;
    pthread_t one;
    while (others.size() + 1 < n && helpers::take()) {
        if (pthread_create(&one, nullptr, compile_some, &w)) {
            helpers::give();
            break;
        }
        others.push_back(one);
    }
    compile_some(&w); // alone, if there was no other thread to be had
    for (pthread_t other : others) {
        wait_for(other, o->stop);
        helpers::give();
    }
    for (const std::string &message : w.messages)
        drv_put(err, message);
    return !err->len;
}

} // namespace

bool drv_clang_objects(const drv_bytes *texts, size_t n, const drv_clang_options *o, base_str *out, base_str *err) {
    drv_llvm_init();
    std::vector<object_bytes> objects(n);
    bool ok = compile_all(texts, n, o, objects.data(), err);
    for (size_t i = 0; i < n; i++) {
        base_str_add_n(&out[i], objects[i].data(), objects[i].size());
        ok &= !out[i].failed;
    }
    return ok;
}
