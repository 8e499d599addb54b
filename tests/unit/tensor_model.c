/* Random programs of tensors in a scope -- create, view, compute, spill, realise, save, load, drop, more than fits -- against a
 * model that knows what each buffer is, where it is and what is in it.  After every step the accounts, the residency of
 * every tensor and the counters are what the model says; with LRU, where the order of use decides, they agree with one another. */
#include "tensor_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static home *const h = &(home){0};

/* ---- the model ---- */
typedef struct store { /* a buffer */
    int refs;
    int64_t bytes;
    bool home, file, spilled, was_home;
} store;

typedef struct node { /* a tensor */
    int refs;
    tiga_tensor *x;
    struct node *arg[2]; /* of an expression; arg[0] of a view: what it looks at */
    bool real;
    bool ran; /* it was computed on the way to something else: the next time it is kept, if there is room */
    int uses; /* by the expression that is computed */
    store *s;
    int64_t n, stride;
    float *want;
    uint64_t seen; /* by a traversal */
} node;

enum { MOST = 24, FILES = 4, BIGGEST = 600 };
typedef struct model {
    uint64_t random, traversal;
    int64_t host, disk; /* budgets */
    bool lru;
    int64_t live, away, spills, restores;
    node *v[MOST]; /* what the user holds */
    int n;
    node *all[20 * MOST]; /* whatever lives */
    int n_all;
    char folder[64];
    float *file[FILES]; /* what was saved there */
    int64_t file_n[FILES];
    tiga_execution *run;
    int counts[16]; /* steps that succeeded, and failed, by kind */
} model;

static uint64_t next(model *m) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return m->random >> 33;
}
static int64_t below(model *m, int64_t n) { return (int64_t)(next(m) % (uint64_t)n); }

static void store_put(model *m, store *s) {
    if (!s || --s->refs)
        return;
    m->live -= s->home ? s->bytes : 0;
    m->away -= s->spilled ? s->bytes : 0;
    free(s);
}

static store *store_new(int64_t bytes) {
    store *s = calloc(1, sizeof *s);
    s->refs = 1;
    s->bytes = bytes;
    return s;
}

static tiga_status make(model *m, int64_t bytes, store **out) {
    *out = NULL;
    if (m->live + bytes > m->host)
        return TIGA_E_BUDGET;
    m->live += bytes;
    *out = store_new(bytes);
    (*out)->home = true;
    return TIGA_OK;
}

static tiga_status bring(model *m, store *s) {
    if (s->home)
        return TIGA_OK;
    if (m->live + s->bytes > m->host)
        return TIGA_E_BUDGET;
    m->live += s->bytes;
    m->away -= s->spilled ? s->bytes : 0;
    m->restores += s->was_home;
    s->spilled = false;
    s->home = true;
    return TIGA_OK;
}

static tiga_status leave(model *m, store *s) {
    if (!s->home)
        return TIGA_OK;
    if (!s->file && m->away + s->bytes > m->disk)
        return TIGA_E_BUDGET;
    m->live -= s->bytes;
    m->away += s->file ? 0 : s->bytes;
    m->spills++;
    s->spilled = !s->file;
    s->home = false;
    s->was_home = true;
    return TIGA_OK;
}

static node *node_new(model *m, tiga_tensor *x, int64_t n) {
    node *d = calloc(1, sizeof *d);
    d->refs = 1;
    d->x = x;
    d->n = n;
    d->stride = 1;
    d->want = malloc((size_t)n * 4);
    cr_assert_lt(m->n_all, 20 * MOST);
    m->all[m->n_all++] = d;
    return d;
}

static void node_put(model *m, node *d) {
    if (!d || --d->refs)
        return;
    node_put(m, d->arg[0]);
    node_put(m, d->arg[1]);
    store_put(m, d->s);
    for (int i = 0; i < m->n_all; i++)
        if (m->all[i] == d)
            m->all[i--] = m->all[--m->n_all];
    free(d->want);
    free(d);
}

/* Its own memory, dense. */
static tiga_status densify(model *m, node *d) {
    store *own;
    if (d->stride == 1 || d->n == 1)
        return TIGA_OK;
    tiga_status status = bring(m, d->s);
    if (status == TIGA_OK)
        status = make(m, d->n * 4, &own);
    if (status != TIGA_OK)
        return status;
    store_put(m, d->s);
    d->s = own;
    d->stride = 1;
    return TIGA_OK;
}

static tiga_status bring_leaves(model *m, node *d) {
    if (d->seen == m->traversal)
        return TIGA_OK;
    d->seen = m->traversal;
    if (!d->real) {
        tiga_status status = bring_leaves(m, d->arg[0]);
        return status == TIGA_OK && d->arg[1] ? bring_leaves(m, d->arg[1]) : status;
    }
    tiga_status status = densify(m, d);
    return status == TIGA_OK ? bring(m, d->s) : status;
}

static void forget(model *m, node *d) {
    node_put(m, d->arg[0]);
    node_put(m, d->arg[1]);
    d->arg[0] = d->arg[1] = NULL;
}

/* Whether the user has x or something that it was made from. */
static bool is_held(const node *x) {
    if (x->refs > x->uses || (x->real && x->arg[0]))
        return true;
    return !x->real && (is_held(x->arg[0]) || (x->arg[1] && is_held(x->arg[1])));
}

static void count_uses(node *d, int by) {
    for (int k = 0; k < 2 && !d->real; k++)
        if (d->arg[k])
            d->arg[k]->uses = by ? d->arg[k]->uses + by : 0;
}

static bool leads_to(const model *m, node *from, const node *to) {
    if (from == to)
        return true;
    if (from->real || from->seen == m->traversal)
        return false;
    from->seen = m->traversal;
    return leads_to(m, from->arg[0], to) || (from->arg[1] && leads_to(m, from->arg[1], to));
}

/* Whether a is still there when d has its value: the user has it, or something else to be made from it. */
static bool outlives(model *m, const node *a, node *d) {
    m->traversal++;
    d->seen = m->traversal;
    for (int i = 0; i < m->n; i++)
        if (m->v[i] != d && leads_to(m, m->v[i], a))
            return true;
    return false;
}

/* What d is made of that was computed before: those become results, too.  With LRU it is not known whether there was room, so
 * the library, which has done the step, is asked about what it has not freed. */
static int find_kept(model *m, node *d, node **kept) {
    int n = 0;
    for (int k = 0; k < 2 && !d->ran; k++) {
        node *a = d->arg[k];
        if (!a || a->real || !a->ran || (k && a == d->arg[0]))
            continue;
        if (!m->lru || (outlives(m, a, d) && tiga_tensor_get_execution(a->x).how != TIGA_TENSOR_PENDING))
            kept[n++] = a;
    }
    return m->lru || m->live + (n + 1) * d->n * 4 <= m->host ? n : 0;
}

static tiga_status compute(model *m, node *d) {
    node *kept[2], *parts[3] = {d, d->arg[0], d->arg[1]};
    bool forgets[2];
    if (d->real)
        return TIGA_OK;
    m->traversal++;
    tiga_status status = bring_leaves(m, d);
    int n = status == TIGA_OK ? find_kept(m, d, kept) : 0;
    if (status == TIGA_OK)
        status = make(m, d->n * 4, &d->s);
    if (status != TIGA_OK)
        return status;
    for (int by = 0; by < 2; by++)
        for (int i = 0; i < 3; i++)
            if (parts[i] && !(i == 2 && parts[1] == parts[2]))
                count_uses(parts[i], by);
    for (int i = 0; i < n; i++) {
        forgets[i] = !is_held(kept[i]->arg[0]) && !(kept[i]->arg[1] && is_held(kept[i]->arg[1]));
        cr_assert_eq(make(m, d->n * 4, &kept[i]->s), TIGA_OK);
    }
    for (int i = 1; i < 3; i++)
        if (parts[i] && !parts[i]->real)
            parts[i]->ran = true;
    for (int i = 0; i < n; i++) {
        kept[i]->real = true;
        if (forgets[i])
            forget(m, kept[i]);
    }
    d->real = true;
    forget(m, d);
    return TIGA_OK;
}

/* ---- LRU: where things are is asked for, and must add up ---- */
static void refresh(model *m) {
    for (int i = 0; i < m->n_all; i++) { /* a step that failed may have packed a view before */
        node *d = m->all[i];
        tiga_residency r = {0};
        if (d->s)
            OK(tiga_tensor_residency(d->x, &r, NULL));
        if (d->s && r.bytes != d->s->bytes) {
            cr_assert(d->stride != 1 && r.bytes == d->n * 4);
            store_put(m, d->s);
            d->s = store_new(r.bytes);
            d->stride = 1;
        }
    }
    m->live = m->away = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_all; i++) {
            node *d = m->all[i];
            tiga_residency r;
            if (!d->s)
                continue;
            if (pass == 0) {
                OK(tiga_tensor_residency(d->x, &r, NULL));
                d->s->home = r.resident;
                d->s->spilled = r.backing == TIGA_BACKING_SPILL;
                d->s->refs |= 1 << 20;
            } else if (d->s->refs & 1 << 20) { /* once */
                d->s->refs &= ~(1 << 20);
                m->live += d->s->home ? d->s->bytes : 0;
                m->away += d->s->spilled ? d->s->bytes : 0;
            }
        }
}

/* Everything that a step may need at once, counted generously. */
static int64_t working_set(model *m, node *d) {
    if (d->seen == m->traversal)
        return 0;
    d->seen = m->traversal;
    int64_t n = d->n * 4;
    if (d->real)
        return (d->s->bytes) + (d->stride == 1 ? 0 : n);
    return n + working_set(m, d->arg[0]) + (d->arg[1] ? working_set(m, d->arg[1]) : 0);
}

static bool must_fit(model *m, node *d) {
    m->traversal++;
    return working_set(m, d) <= m->host;
}

/* ---- steps ---- */
typedef enum step { CREATE, VIEW, APPLY, OBSERVE, SPILL, REALIZE, SAVE, LOAD, DROP, STEPS } step;

static void add(model *m, node *d) {
    if (m->n == MOST) { /* one goes for it */
        int64_t i = below(m, MOST);
        tiga_tensor_free(m->v[i]->x);
        node_put(m, m->v[i]);
        m->v[i] = d;
    } else {
        m->v[m->n++] = d;
    }
}

static tiga_status create(model *m, tiga_status *want) {
    static float data[4 * BIGGEST];
    int64_t n = 1 + below(m, next(m) % 8 ? BIGGEST : 4 * BIGGEST);
    tiga_tensor *x;
    tiga_array a = tiga_array_borrow(data, TIGA_F32, 1, &n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(below(m, 2000) - 1000);
    tiga_status status = tiga_tensor_from(h->ts, &a, TIGA_COPY, &x);
    *want = n * 4 > m->host ? TIGA_E_BUDGET : TIGA_OK;
    store *s = NULL;
    if (!m->lru)
        *want = make(m, n * 4, &s);
    else if (status == TIGA_OK)
        s = store_new(n * 4);
    if (status != TIGA_OK || *want != TIGA_OK)
        return status;
    node *d = node_new(m, x, n);
    d->real = true;
    d->s = s;
    memcpy(d->want, data, (size_t)n * 4);
    add(m, d);
    return status;
}

static tiga_status view(model *m, node *of) {
    if (!of->real)
        return TIGA_OK;
    int64_t step = 1 + below(m, 3), n = 1 + below(m, (of->n + step - 1) / step),
            begin = below(m, of->n - (n - 1) * step);
    tiga_tensor *x;
    OK(tiga_tensor_slice(of->x, 0, begin, n, step, &x));
    node *d = node_new(m, x, n);
    d->real = true;
    d->s = of->s;
    d->s->refs++;
    d->stride = of->stride * (n > 1 ? step : 1);
    d->arg[0] = of;
    of->refs++;
    for (int64_t i = 0; i < n; i++)
        d->want[i] = of->want[begin + i * step];
    add(m, d);
    return TIGA_OK;
}

static int depth(const node *d) {
    return d->real ? 0 : 1 + (d->arg[1] && depth(d->arg[1]) > depth(d->arg[0]) ? depth(d->arg[1]) : depth(d->arg[0]));
}

static tiga_status apply(model *m, node *a) {
    static const char *const names[] = {"min", "max", "sub"};
    node *b = a;
    int64_t op = below(m, 3);
    for (int i = 0; i < 20 && b == a; i++) {
        node *c = m->v[below(m, m->n)];
        b = c->n == a->n ? c : a;
    }
    if (depth(a) + depth(b) > 1) /* few programs */
        return TIGA_OK;
    tiga_tensor *x;
    OK(tiga_tensor_op(names[op], (tiga_tensor *[]){a->x, b->x}, 2, &x));
    node *d = node_new(m, x, a->n);
    d->arg[0] = a;
    d->arg[1] = b;
    a->refs++;
    b->refs++;
    for (int64_t i = 0; i < a->n; i++) {
        float p = a->want[i], q = b->want[i];
        d->want[i] = op == 0 ? (p < q ? p : q) : op == 1 ? (p > q ? p : q) : p - q;
    }
    add(m, d);
    return TIGA_OK;
}

static tiga_status observe(node *d) {
    float *got = malloc((size_t)d->n * 4);
    tiga_status status = tiga_tensor_copy_to(d->x, got, d->n * 4);
    cr_assert(status != TIGA_OK || !memcmp(got, d->want, (size_t)d->n * 4));
    free(got);
    return status;
}

static tiga_status save(model *m, node *d) {
    char path[128];
    int64_t slot = below(m, FILES);
    snprintf(path, sizeof path, "%s/%d.tiga", m->folder, (int)slot);
    tiga_status status = tiga_tensor_save(path, NULL, &d->x, 1, 1);
    if (status == TIGA_OK) {
        m->file[slot] = realloc(m->file[slot], (size_t)d->n * 4);
        memcpy(m->file[slot], d->want, (size_t)d->n * 4);
        m->file_n[slot] = d->n;
    }
    return status;
}

static tiga_status load(model *m) {
    char path[128];
    tiga_tensor *x;
    int64_t slot = below(m, FILES);
    if (!m->file[slot])
        return TIGA_OK;
    snprintf(path, sizeof path, "%s/%d.tiga", m->folder, (int)slot);
    OK(tiga_tensor_load_file(h->ts, path, NULL, &x));
    node *d = node_new(m, x, m->file_n[slot]);
    d->real = true;
    d->s = store_new(d->n * 4);
    d->s->file = true;
    memcpy(d->want, m->file[slot], (size_t)d->n * 4);
    add(m, d);
    return TIGA_OK;
}

/* What the step does to the model. */
static tiga_status predict(model *m, step k, node *d) {
    tiga_status status = compute(m, d);
    if (status == TIGA_OK && k == OBSERVE)
        status = densify(m, d);
    bool stays = k == SAVE && (d->stride > 0 || d->n == 1); /* what is on disk is saved from there, but not backwards */
    if (status == TIGA_OK && !stays)
        status = k == SPILL ? leave(m, d->s) : bring(m, d->s);
    return status;
}

/* In LRU scopes it is only known what cannot fail, and what a success has done. */
static tiga_status follow(model *m, step k, node *d, bool fits, tiga_status status) {
    if (status != TIGA_OK && !fits) {
        cr_assert_eq(status, TIGA_E_BUDGET, "%s", tiga_error_text(h->ctx));
        return status;
    }
    cr_assert_eq(status, TIGA_OK, "%s", tiga_error_text(h->ctx));
    int64_t host = m->host, disk = m->disk;
    m->host = m->disk = INT64_MAX / 2;
    cr_assert_eq(predict(m, k, d), TIGA_OK);
    m->host = host;
    m->disk = disk;
    return TIGA_OK;
}

static void check(model *m) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    OK(tiga_execution_report(m->run, &r));
    if (m->lru)
        refresh(m);
    cr_assert_eq(r.live[TIGA_TIER_HOST], m->live, "%lld bytes live, %lld by the model",
                 (long long)r.live[TIGA_TIER_HOST], (long long)m->live);
    cr_assert_eq(r.live[TIGA_TIER_DISK], m->away);
    cr_assert(r.peak[TIGA_TIER_HOST] <= m->host);
    if (!m->lru)
        cr_assert(r.spills == m->spills && r.restores == m->restores && r.evictions == 0);
    for (int i = 0; i < m->n_all; i++) {
        const node *d = m->all[i];
        tiga_residency w;
        int32_t storage;
        OK(tiga_tensor_residency(d->x, &w, &storage));
        cr_assert_eq(storage, d->real ? TIGA_STORAGE_BUFFER : TIGA_STORAGE_NONE);
        if (!d->real)
            continue;
        cr_assert(w.bytes == d->s->bytes && w.pins == 0 && w.resident == d->s->home);
        cr_assert_eq(w.backing, d->s->spilled ? TIGA_BACKING_SPILL
                                : d->s->file  ? TIGA_BACKING_SNAPSHOT
                                              : TIGA_BACKING_NONE);
    }
}

static void one_step(model *m) {
    static const step chosen[] = {CREATE, CREATE, VIEW,  APPLY,   APPLY,   APPLY, OBSERVE, OBSERVE, OBSERVE,
                                  SPILL,  SPILL,  SPILL, REALIZE, REALIZE, SAVE,  LOAD,    DROP,    DROP};
    step k = chosen[below(m, sizeof chosen / sizeof *chosen)];
    tiga_status status = TIGA_OK, want = TIGA_OK;
    if (m->n == 0)
        k = CREATE;
    int64_t i = m->n ? below(m, m->n) : 0;
    node *d = m->n ? m->v[i] : NULL;
    bool acts = k == OBSERVE || k == SPILL || k == REALIZE || k == SAVE, fits = d && must_fit(m, d);
    if (k == CREATE)
        status = create(m, &want);
    else if (k == VIEW)
        status = view(m, d);
    else if (k == APPLY)
        status = apply(m, d);
    else if (k == LOAD)
        status = load(m);
    else if (k == OBSERVE)
        status = observe(d);
    else if (k == SPILL)
        status = tiga_tensor_spill(d->x);
    else if (k == REALIZE)
        status = tiga_tensor_realize(&d->x, 1);
    else if (k == SAVE)
        status = save(m, d);
    if (acts)
        want = m->lru ? follow(m, k, d, fits, status) : predict(m, k, d);
    cr_assert_eq(status, want, "step %d: status %d, %d by the model: %s", (int)k, status, want,
                 tiga_error_text(h->ctx));
    tiga_error_clear(h->ctx);
    m->counts[k]++;
    m->counts[15] += status != TIGA_OK;
    if (k == DROP) {
        tiga_tensor_free(d->x);
        m->v[i] = m->v[--m->n];
        node_put(m, d);
    }
}

static void finish(model *m) {
    while (m->n > 0) {
        tiga_tensor_free(m->v[--m->n]->x);
        node_put(m, m->v[m->n]);
    }
    cr_assert_eq(m->n_all, 0);
    check(m);
    cr_assert(m->live == 0 && m->away == 0);
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    OK(tiga_execution_end(h->ctx));
    tiga_execution_free(m->run);
    for (int i = 0; i < FILES; i++)
        free(m->file[i]);
    DIR *d = opendir(m->folder);
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(m->folder);
}

static void steps(uint64_t seed, int n, bool lru) {
    model m = {.random = seed, .host = lru ? 3000 : 6000, .disk = lru ? 1 << 20 : 5000, .lru = lru};
    tiga_execution_options o = tiga_execution_defaults();
    strcpy(m.folder, "/var/tmp/tiga-test-XXXXXX");
    cr_assert(mkdtemp(m.folder) != NULL);
    o.budget[TIGA_TIER_HOST] = m.host;
    o.budget[TIGA_TIER_DISK] = m.disk;
    o.spill_dir = m.folder;
    o.eviction = lru ? TIGA_EVICT_LRU : TIGA_EVICT_ERROR;
    OK(tiga_execution_begin(h->ctx, &o, &m.run));
    for (int i = 0; i < n; i++) {
        one_step(&m);
        check(&m);
    }
    cr_assert_gt(m.counts[15], n / 100, "%d steps did not fit", m.counts[15]);
    finish(&m);
}

static void begin(void) { *h = home_new(4096, 1); }
static void done(void) { home_free(h); }
TestSuite(tensor_model, .init = begin, .fini = done, .timeout = 300);

Test(tensor_model, accounts) {
    for (uint64_t seed = 1; seed <= 10; seed++)
        steps(seed, 500, false);
}

Test(tensor_model, lru) {
    for (uint64_t seed = 1; seed <= 10; seed++)
        steps(seed, 500, true);
}
