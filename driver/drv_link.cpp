// Objects to a shared object, with LLD 19, all in memory: it reads them from unnamed files and writes into a pipe.
#include "driver/drv_clang.h"
#include "driver/drv_llvm.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

LLD_HAS_DRIVER(elf)

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

bool link(const base_str *objects, size_t n, const char *soname, base_str *out, base_str *err) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    std::vector<std::unique_ptr<memory_file>> in;
    collecting_pipe pipe;
    std::vector<std::string> args = lld_arguments(pipe.path(), soname);
    bool ok = pipe.ok();
    for (size_t i = 0; i < n; i++) {
        in.push_back(std::make_unique<memory_file>(objects[i].data, objects[i].len));
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
        drv_put(err, stream.str());
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
    std::vector<base_str> objects(n);
    bool ok = drv_clang_objects(texts, n, o, objects.data(), err) && link(objects.data(), n, soname, out, err);
    for (base_str &object : objects)
        base_str_fini(&object);
    return ok;
}
