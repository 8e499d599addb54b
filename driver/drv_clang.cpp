// Glue to the Clang, LLVM and LLD 19 libraries (see drv_clang.h).  Holds no knowledge of Tiga but the flags its C is compiled
// with; which passes run at -O1 and -O2 says drv_codegen.cpp, the other C++ file.
//
// Bits: floating point contraction is off, functions of mathematics are Tiga's own or one correctly rounded instruction, and
// fmod is compiled as an unknown call (-fno-builtin-NAME), so that LLVM does not fold it with the doubles of this process:
// what runs is libm's own result, the same that the interpreter computes.
#include "driver/drv_clang.h"
#include "driver/drv_codegen.h"
#include "driver/drv_symbols.h"

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/CodeGen/BackendUtil.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "lld/Common/Driver.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/TargetParser/Host.h"
#if defined(__x86_64__)
#include "llvm/TargetParser/X86TargetParser.h"
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

LLD_HAS_DRIVER(elf)

namespace {

void init_llvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        llvm::InitializeNativeTargetAsmParser();
    });
}

void put(base_str *out, llvm::StringRef text) { base_str_add_n(out, text.data(), text.size()); }

// ---- processors ----------------------------------------------------------------------------------------------------

std::string triple() { return llvm::sys::getDefaultTargetTriple(); }

#if !defined(__x86_64__)
const char *baseline_cpu() { return "generic"; }

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(llvm::StringRef cpu, llvm::StringRef switches) {
    std::string error;
    const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple(), error);
    if (!target)
        return nullptr;
    return std::unique_ptr<llvm::MCSubtargetInfo>(target->createMCSubtargetInfo(triple(), cpu, switches));
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
    init_llvm();
    *out = drv_cpu{};
    if (!name || !strcmp(name, "native")) {
        put(&out->name, llvm::sys::getHostCPUName());
        std::set<std::string> sorted; // the map has no order of its own; the same text on every run
        for (const auto &f : llvm::sys::getHostCPUFeatures())
            sorted.insert((f.second ? "+" : "-") + f.first().str());
        for (const std::string &f : sorted) {
            if (out->switches.len)
                base_str_add(&out->switches, ",");
            put(&out->switches, f);
        }
    } else {
        if (!is_known_cpu(name, err))
            return false;
        base_str_add(&out->name, name);
    }
    for (const std::string &f : features_of(*out)) {
        if (out->features.len)
            base_str_add(&out->features, ",");
        put(&out->features, f);
    }
    return true;
}

void drv_cpu_fini(drv_cpu *cpu) {
    base_str_fini(&cpu->name);
    base_str_fini(&cpu->switches);
    base_str_fini(&cpu->features);
}

// ---- C to IR or object ---------------------------------------------------------------------------------------------

namespace {

// The one function of libm that is called by name (cg_libm) and has no instruction.
const char *const remainders[] = {"fmod", "fmodf"};

std::vector<std::string> clang_arguments(llvm::StringRef text, const drv_clang_options *o, const std::string &path) {
    std::vector<std::string> args = {
        "-triple",
        triple(),
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
    init_llvm();
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
    put(err, why);
    base_str_add_n(out, bytes.data(), bytes.size());
    return why.empty() && !out->failed;
}

// ---- C texts to objects, on as many threads as there are processors --------------------------------------------------

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

size_t n_processors() {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    return n > 1 ? size_t(n) : 1;
}

bool compile_all(const drv_bytes *texts, size_t n, const drv_clang_options *o, object_bytes *objects, base_str *err) {
    work w = {texts, n, o, objects, std::vector<std::string>(n)};
    std::vector<pthread_t> others;
    pthread_t one;
    while (others.size() + 1 < std::min(n, n_processors()) && !pthread_create(&one, nullptr, compile_some, &w))
        others.push_back(one);
    compile_some(&w); // alone, if there was no other thread to be had
    for (pthread_t other : others)
        wait_for(other, o->stop);
    for (const std::string &message : w.messages)
        put(err, message);
    return !err->len;
}

} // namespace

// ---- object to shared object ---------------------------------------------------------------------------------------

namespace {

// An unnamed file in memory that LLD can open by name.
class memory_file {
  public:
    memory_file(const void *bytes, size_t n) : fd(memfd_create("tiga.o", MFD_CLOEXEC)) {
        for (size_t done = 0; fd >= 0 && done < n;) {
            ssize_t k = write(fd, static_cast<const char *>(bytes) + done, n - done);
            if (k < 0 && errno == EINTR)
                continue;
            if (k <= 0)
                close_now();
            else
                done += size_t(k);
        }
    }
    ~memory_file() { close_now(); }
    bool ok() const { return fd >= 0; }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }

  private:
    void close_now() {
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    int fd;
};

// LLD writes into a pipe, which it does in one go and without a temporary file or a signal handler (for a regular file
// it would make both); a thread collects.
class collecting_pipe {
  public:
    collecting_pipe() {
        if (pipe2(ends, O_CLOEXEC)) {
            ends[0] = ends[1] = -1;
            return;
        }
        // pthread_create tells of a failure; std::thread would end the process, exceptions being off.
        int failed = pthread_create(
            &reader, nullptr,
            [](void *self) -> void * {
                static_cast<collecting_pipe *>(self)->drain();
                return nullptr;
            },
            this);
        if (!failed)
            return;
        close(ends[0]);
        close(ends[1]);
        ends[0] = ends[1] = -1;
        errno = failed;
    }
    ~collecting_pipe() { finish(); }
    bool ok() const { return ends[0] >= 0; }
    std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }
    std::string &finish() {
        if (ok()) {
            close(ends[1]);
            pthread_join(reader, nullptr);
            close(ends[0]);
            ends[0] = ends[1] = -1;
        }
        return bytes;
    }

  private:
    void drain() {
        char block[1 << 16];
        for (;;) {
            ssize_t k = read(ends[0], block, sizeof block);
            if (k < 0 && errno == EINTR)
                continue;
            if (k <= 0)
                return;
            bytes.append(block, size_t(k));
        }
    }
    int ends[2];
    pthread_t reader;
    std::string bytes;
};

// The file that a library of this process was loaded from: the libm and libc that the module will meet again.  By name,
// because the address of a function may be a jump table of the program itself.
std::string library_of(const char *name) {
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    link_map *map = nullptr;
    std::string path;
    if (handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && map && map->l_name[0] == '/')
        path = map->l_name;
    if (handle)
        dlclose(handle);
    return access(path.c_str(), R_OK) ? "" : path;
}

std::vector<std::string> lld_arguments(const std::string &out, const char *soname) {
    std::vector<std::string> args = {
        "ld.lld",
        "-shared",
        "--threads=1",
        "--hash-style=gnu",
        "--build-id=none",
        "--eh-frame-hdr",
        "--gc-sections",
        "-O2",
        "-z",
        "relro",
        "-z",
        "now",
        "-z",
        "noexecstack",
        "-z",
        "defs",
        "--as-needed",
        "--no-rosegment",
        "-o",
        out,
    };
    if (soname)
        args.insert(args.end(), {"-soname", soname});
    bool complete = true;
    for (const char *name : {LIBM_SO, LIBC_SO}) {
        std::string lib = library_of(name);
        if (lib.empty())
            complete = false;
        else
            args.push_back(lib);
    }
    if (!complete)
        args.push_back("--unresolved-symbols=ignore-all"); // left to the loader
    return args;
}

bool link(const object_bytes *objects, size_t n, const char *soname, base_str *out, base_str *err) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    std::vector<std::unique_ptr<memory_file>> in;
    collecting_pipe pipe;
    std::vector<std::string> args = lld_arguments(pipe.path(), soname);
    bool ok = pipe.ok();
    for (size_t i = 0; i < n; i++) {
        in.push_back(std::make_unique<memory_file>(objects[i].data(), objects[i].size()));
        ok &= in.back()->ok();
        args.push_back(in.back()->path());
    }
    if (!ok) {
        base_str_addf(err, "cannot make a file in memory or a thread for the linker: %s", strerror(errno));
        return false;
    }
    std::vector<const char *> raw;
    for (const std::string &a : args)
        raw.push_back(a.c_str());
    std::string messages;
    llvm::raw_string_ostream stream(messages);
    lld::Result r = lld::lldMain(raw, stream, stream, {{lld::Gnu, &lld::elf::link}});
    std::string &bytes = pipe.finish();
    if (r.retCode || bytes.empty()) {
        put(err, stream.str());
        if (!err->len)
            base_str_add(err, "lld failed without a message");
        return false;
    }
    base_str_add_n(out, bytes.data(), bytes.size());
    return !out->failed;
}

} // namespace

bool drv_clang_module(const drv_bytes *texts, size_t n, const drv_clang_options *o, const char *soname, base_str *out,
                      base_str *err) {
    init_llvm();
    std::vector<object_bytes> objects(n);
    return compile_all(texts, n, o, objects.data(), err) && link(objects.data(), n, soname, out, err);
}

bool drv_clang_objects(const drv_bytes *texts, size_t n, const drv_clang_options *o, base_str *out, base_str *err) {
    init_llvm();
    std::vector<object_bytes> objects(n);
    bool ok = compile_all(texts, n, o, objects.data(), err);
    for (size_t i = 0; i < n; i++) {
        base_str_add_n(&out[i], objects[i].data(), objects[i].size());
        ok &= !out[i].failed;
    }
    return ok;
}

// ---- just in time: objects to code that can be called --------------------------------------------------------------

struct drv_image {
    std::unique_ptr<llvm::jitlink::InProcessMemoryManager> memory;
    std::vector<llvm::jitlink::JITLinkMemoryManager::FinalizedAlloc> parts;
    llvm::StringMap<llvm::orc::ExecutorAddr> defined;
    int64_t n_bytes = 0;
    ~drv_image() {
        if (!parts.empty())
            llvm::consumeError(memory->deallocate(std::move(parts)));
    }
};

namespace {

namespace jitlink = llvm::jitlink;
using lookup_map = jitlink::JITLinkContext::LookupMap;

// What an object asks for, kept until every object of the image has its addresses.
struct question {
    std::vector<std::pair<std::string, jitlink::SymbolLookupFlags>> names;
    std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> answer;
};

struct linking {
    drv_image *image;
    std::vector<question> questions;
    std::string damaged, unknown;
};

class image_context : public jitlink::JITLinkContext {
  public:
    explicit image_context(linking &l) : JITLinkContext(nullptr), l(l) {}
    jitlink::JITLinkMemoryManager &getMemoryManager() override { return *l.image->memory; }
    void notifyFailed(llvm::Error e) override { l.damaged += llvm::toString(std::move(e)); }
    void lookup(const lookup_map &symbols, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> answer) override {
        question q;
        for (const auto &s : symbols)
            q.names.push_back({s.first.str(), s.second});
        q.answer = std::move(answer);
        l.questions.push_back(std::move(q));
    }
    llvm::Error notifyResolved(jitlink::LinkGraph &g) override {
        for (jitlink::Symbol *s : g.defined_symbols())
            if (s->hasName() && s->getScope() != jitlink::Scope::Local)
                l.image->defined[s->getName()] = s->getAddress();
        for (jitlink::Block *b : g.blocks())
            l.image->n_bytes += int64_t(b->getSize());
        return llvm::Error::success();
    }
    void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc part) override {
        l.image->parts.push_back(std::move(part));
    }

  private:
    linking &l;
};

// From the other objects of the image or from the list of what emitted code may call.
void answer(linking &l, question &q) {
    jitlink::AsyncLookupResult found;
    std::string missing;
    for (const auto &[name, flags] : q.names) {
        auto own = l.image->defined.find(name);
        void *ours = own == l.image->defined.end() ? drv_symbol_find(name.c_str()) : nullptr;
        if (own != l.image->defined.end())
            found[name] = {own->second, llvm::JITSymbolFlags::Exported};
        else if (ours)
            found[name] = {llvm::orc::ExecutorAddr::fromPtr(ours), llvm::JITSymbolFlags::Exported};
        else if (flags == jitlink::SymbolLookupFlags::RequiredSymbol)
            missing += (missing.empty() ? "" : " ") + name;
    }
    if (missing.empty()) {
        q.answer->run(std::move(found));
        return;
    }
    l.unknown += missing;
    q.answer->run(llvm::createStringError(llvm::inconvertibleErrorCode(), "unknown symbols"));
}

} // namespace

drv_image_status drv_image_load(const drv_bytes *objects, size_t n, drv_image **out, base_str *err) {
    *out = nullptr;
    auto memory = jitlink::InProcessMemoryManager::Create();
    if (!memory) {
        put(err, llvm::toString(memory.takeError()));
        return DRV_IMAGE_MEMORY;
    }
    auto image = std::make_unique<drv_image>();
    image->memory = std::move(*memory);
    linking l = {image.get(), {}, "", ""};
    for (size_t i = 0; i < n && l.damaged.empty(); i++) {
        llvm::MemoryBufferRef bytes(llvm::StringRef(objects[i].data, objects[i].n), "tiga");
        auto graph = jitlink::createLinkGraphFromObject(bytes);
        if (graph)
            jitlink::link(std::move(*graph), std::make_unique<image_context>(l));
        else
            l.damaged += llvm::toString(graph.takeError());
    }
    std::vector<question> questions = std::move(l.questions);
    for (question &q : questions) // each must be answered, whatever happened
        answer(l, q);
    if (l.unknown.empty() && l.damaged.empty()) {
        *out = image.release();
        return DRV_IMAGE_OK;
    }
    put(err, l.unknown.empty() ? l.damaged : "emitted code calls " + l.unknown);
    return l.unknown.empty() ? DRV_IMAGE_DAMAGED : DRV_IMAGE_UNKNOWN;
}

void *drv_image_find(const drv_image *i, const char *symbol) {
    auto at = i->defined.find(symbol);
    return at == i->defined.end() ? nullptr : at->second.toPtr<void *>();
}

int64_t drv_image_bytes(const drv_image *i) { return i->n_bytes; }

void drv_image_free(drv_image *i) { delete i; }
