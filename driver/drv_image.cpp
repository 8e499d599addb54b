// Just in time: objects to code that can be called, with LLVM's JITLink.
#include "driver/drv_clang.h"
#include "driver/drv_llvm.h"
#include "driver/drv_symbols.h"

#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"

#include <memory>
#include <string>
#include <vector>

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
        drv_put(err, llvm::toString(memory.takeError()));
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
    drv_put(err, l.unknown.empty() ? l.damaged : "emitted code calls " + l.unknown);
    return l.unknown.empty() ? DRV_IMAGE_DAMAGED : DRV_IMAGE_UNKNOWN;
}

void *drv_image_find(const drv_image *i, const char *symbol) {
    auto at = i->defined.find(symbol);
    return at == i->defined.end() ? nullptr : at->second.toPtr<void *>();
}

int64_t drv_image_bytes(const drv_image *i) { return i->n_bytes; }

void drv_image_free(drv_image *i) { delete i; }
