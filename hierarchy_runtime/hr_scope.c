/* Scopes: an account of its own for what a stretch of a program allocates; reports; and the half of an account that holds
 * buffers, made when it is first needed. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- hr_memory ---- */

static void memory_free(rt_room *room) {
    hr_memory *m = (hr_memory *)room;
    hr_fork_remove(m);
    hr_worker_fini(&m->worker);
    hr_worker_fini(&m->writer);
    hr_kept_drop(&m->kept);
    pthread_mutex_destroy(&m->kept.lock);
    hr_spill_fini(&m->spill);
    pthread_cond_destroy(&m->moved);
    pthread_mutex_destroy(&m->lock);
    base_free(m);
}

static hr_memory *memory_new(tiga_execution *e) {
    hr_memory *m = base_alloc_zero(sizeof *m);
    if (!m)
        return NULL;
    m->room.make = hr_make_room;
    m->room.free = memory_free;
    m->account = e;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->moved, NULL);
    pthread_mutex_init(&m->kept.lock, NULL);
    hr_spill_init(&m->spill);
    hr_worker_init(&m->worker);
    hr_worker_init(&m->writer);
    hr_copies_init(m);
    return m;
}

hr_memory *hr_memory_of(tiga_context *ctx, tiga_execution *e) {
    hr_memory *made = NULL;
    pthread_mutex_lock(&e->lock);
    if (!e->room) {
        made = memory_new(e);
        e->room = made ? &made->room : NULL;
    }
    hr_memory *m = (hr_memory *)e->room;
    pthread_mutex_unlock(&e->lock);
    if (made)
        hr_fork_add(made);
    if (!m)
        rt_fail(ctx, TIGA_E_MEMORY, "out of memory");
    return m;
}

hr_memory *hr_memory_if(tiga_execution *e) {
    pthread_mutex_lock(&e->lock);
    hr_memory *m = (hr_memory *)e->room;
    pthread_mutex_unlock(&e->lock);
    return m;
}

const char *hr_spill_folder(const tiga_execution *e) {
    if (e->options.spill_dir)
        return e->options.spill_dir;
    const char *own = secure_getenv("TIGA_SPILL_DIR"), *tmp = secure_getenv("TMPDIR");
    return own && *own ? own : tmp && *tmp ? tmp : "/var/tmp";
}

/* ---- begin and end ---- */

static tiga_status check_numbers(tiga_context *ctx, const tiga_execution_options *o) {
    if (o->eviction != TIGA_EVICT_ERROR && o->eviction != TIGA_EVICT_LRU)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_begin: %d is not a kind of eviction", (int)o->eviction);
    if (o->eviction == TIGA_EVICT_LRU && !o->spill_dir)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_begin: LRU eviction needs a spill_dir");
    if (o->page_rows < 0 || o->prefetch_depth < -1)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_begin: page_rows and prefetch_depth are not negative");
    if (o->device && strcmp(o->device, "cpu") != 0)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "tiga_execution_begin: this runtime has no device '%s', only 'cpu'",
                       o->device);
    return TIGA_OK;
}

static tiga_status check_folder(tiga_context *ctx, const char *folder) {
    struct stat st;
    if (!folder)
        return TIGA_OK;
    if (base_file_injected() || stat(folder, &st) != 0)
        return hr_fail_errno(ctx, TIGA_E_FILE, folder, "spill there");
    if (!S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (access(folder, W_OK | X_OK) == 0)
        return TIGA_OK;
    return hr_fail_errno(ctx, TIGA_E_FILE, folder, "spill there");
}

/* Where the program is now is no matter later. */
static char *absolute(const char *folder) { return folder ? realpath(folder, NULL) : NULL; }

static tiga_status make_account(tiga_context *ctx, const tiga_execution_options *options, tiga_execution **out) {
    tiga_execution_options o = *options;
    for (int t = 0; t < TIGA_TIERS; t++)
        o.budget[t] = o.budget[t] < 0 ? ctx->own->budget[t] : o.budget[t];
    char *folder = absolute(o.spill_dir);
    if (o.spill_dir && !folder)
        return hr_fail_errno(ctx, TIGA_E_FILE, o.spill_dir, "spill there");
    o.spill_dir = folder;
    rt_shared *shared = NULL;
    tiga_status status = o.shared ? rt_shared_open(ctx, o.shared, o.budget, &shared) : TIGA_OK;
    *out = status == TIGA_OK ? rt_account_new(&o, shared) : NULL;
    free(folder);
    if (status == TIGA_OK && !*out) {
        rt_shared_close(shared);
        status = rt_fail(ctx, TIGA_E_MEMORY, "tiga_execution_begin: out of memory");
    }
    return status;
}

/* A caller built against another version: the fields both know. */
static tiga_status read_options(tiga_context *ctx, const tiga_execution_options *options, tiga_execution_options *o) {
    *o = tiga_execution_defaults();
    if (!options)
        return TIGA_OK;
    if (options->struct_bytes < sizeof(size_t) || options->struct_bytes > 4096)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_begin: struct_bytes is not set");
    memcpy(o, options, options->struct_bytes < sizeof *o ? options->struct_bytes : sizeof *o);
    o->struct_bytes = sizeof *o;
    return TIGA_OK;
}

tiga_status tiga_execution_begin(tiga_context *ctx, const tiga_execution_options *options, tiga_execution **out) {
    if (out)
        *out = NULL;
    if (!ctx)
        return TIGA_E_ARGUMENT;
    RT_TURN(ctx);
    tiga_execution_options o;
    tiga_status status = read_options(ctx, options, &o);
    if (status == TIGA_OK && tiga_execution_active(ctx))
        status = rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_begin: scopes do not nest; end the other one first");
    if (status == TIGA_OK)
        status = check_numbers(ctx, &o);
    if (status == TIGA_OK)
        status = check_folder(ctx, o.spill_dir);
    tiga_execution *e = NULL;
    if (status == TIGA_OK)
        status = make_account(ctx, &o, &e);
    if (status != TIGA_OK)
        return status;
    if (out)
        *out = tiga_execution_retain(e);
    pthread_mutex_lock(&ctx->lock);
    atomic_store(&e->keep, ctx->keep);
    ctx->account = e;
    pthread_mutex_unlock(&ctx->lock);
    return TIGA_OK;
}

/* ---- memory kept for reuse ---- */

static void keep_most(tiga_execution *e, int64_t n_bytes) {
    hr_memory *m = hr_memory_if(e);
    atomic_store(&e->keep, n_bytes);
    if (m && atomic_load(&m->kept.bytes) > n_bytes)
        hr_kept_drop(&m->kept);
}

tiga_status tiga_memory_keep(tiga_context *ctx, int64_t n_bytes) {
    if (!ctx || n_bytes < 0)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_memory_keep: the context is NULL, or the size negative");
    pthread_mutex_lock(&ctx->lock);
    ctx->keep = n_bytes;
    pthread_mutex_unlock(&ctx->lock);
    tiga_execution *e = rt_account_of(ctx);
    keep_most(ctx->own, n_bytes);
    keep_most(e, n_bytes);
    tiga_execution_free(e);
    return TIGA_OK;
}

void tiga_memory_trim(tiga_context *ctx) {
    tiga_execution *e = rt_account_of(ctx);
    hr_memory *in_force = e ? hr_memory_if(e) : NULL, *own = e ? hr_memory_if(ctx->own) : NULL;
    if (in_force)
        hr_kept_drop(&in_force->kept);
    if (own)
        hr_kept_drop(&own->kept);
    tiga_execution_free(e);
}

/* The context has its own account again; *out: the scope that was in force. */
static tiga_status take_off(tiga_context *ctx, const char *who, tiga_execution **out) {
    if (!ctx)
        return TIGA_E_ARGUMENT;
    pthread_mutex_lock(&ctx->lock);
    *out = ctx->account;
    ctx->account = ctx->own;
    ctx->entered = false;
    pthread_mutex_unlock(&ctx->lock);
    return *out != ctx->own ? TIGA_OK : rt_fail(ctx, TIGA_E_ARGUMENT, "%s: there is no scope", who);
}

tiga_status tiga_execution_end(tiga_context *ctx) {
    RT_TURN(ctx);
    tiga_execution *e;
    tiga_status status = take_off(ctx, "tiga_execution_end", &e);
    if (status != TIGA_OK)
        return status;
    atomic_store(&e->active, false);
    keep_most(e, 0);
    if (hr_memory_if(e))
        (void)hr_copies_give_way(hr_memory_if(e), true);
    rt_code_forget(e);
    tiga_execution_free(e);
    return TIGA_OK;
}

tiga_status tiga_execution_enter(tiga_context *ctx, tiga_execution *e) {
    if (!ctx || !e)
        return ctx ? rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_enter: the account is NULL") : TIGA_E_ARGUMENT;
    RT_TURN(ctx);
    pthread_mutex_lock(&ctx->lock);
    bool free = ctx->account == ctx->own;
    if (free) {
        ctx->account = tiga_execution_retain(e);
        ctx->entered = true;
    }
    pthread_mutex_unlock(&ctx->lock);
    return free ? TIGA_OK
                : rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_enter: scopes do not nest; end the other one first");
}

tiga_status tiga_execution_leave(tiga_context *ctx) {
    RT_TURN(ctx);
    tiga_execution *e;
    tiga_status status = take_off(ctx, "tiga_execution_leave", &e);
    if (status == TIGA_OK)
        tiga_execution_free(e);
    return status;
}

tiga_execution *tiga_execution_current(tiga_context *ctx) { return rt_account_of(ctx); }

bool tiga_execution_active(tiga_context *ctx) {
    if (!ctx)
        return false;
    pthread_mutex_lock(&ctx->lock);
    bool active = ctx->account != ctx->own;
    pthread_mutex_unlock(&ctx->lock);
    return active;
}

/* ---- reports ---- */

static void count_moves(tiga_execution *e, tiga_memory_report *r) {
    hr_memory *m = hr_memory_if(e);
    if (!m)
        return;
    r->kept = atomic_load(&m->kept.bytes);
    pthread_mutex_lock(&m->lock);
    r->evictions = m->evictions;
    r->restores = m->restores;
    r->spills = m->spills;
    r->ahead = m->copies.bytes;
    r->bytes_written = m->bytes_written;
    r->bytes_read = m->bytes_read;
    pthread_mutex_unlock(&m->lock);
}

tiga_status tiga_execution_report(tiga_execution *e, tiga_memory_report *out) {
    if (!e || !out || out->struct_bytes < sizeof(size_t))
        return TIGA_E_ARGUMENT;
    tiga_memory_report r;
    memset(&r, 0, sizeof r);
    r.struct_bytes = out->struct_bytes;
    for (int t = 0; t < TIGA_TIERS; t++) {
        r.live[t] = atomic_load(&e->live[t]);
        r.peak[t] = atomic_load(&e->peak[t]);
        r.budget[t] = atomic_load(&e->budget[t]);
        r.shared_live[t] = e->shared ? rt_shared_live(e->shared, t) : -1;
    }
    count_moves(e, &r);
    r.eviction = e->options.eviction;
    r.active = atomic_load(&e->active);
    r.code = atomic_load(&e->code);
    r.scope = "buffers, buffers of calls and spilled values made under this account";
    r.exclusions = "arrays of the caller, graphs, compiled code unless count_code says so, snapshot files, staging of "
                   "file transfers, the page cache, "
                   "what the allocator keeps, and of the spill file its free parts and the rounding to 4096 bytes";
    memcpy(out, &r, out->struct_bytes < sizeof r ? out->struct_bytes : sizeof r);
    return TIGA_OK;
}
