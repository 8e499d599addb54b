/* hr_hierarchy.h: what hr_hierarchy.c (instances, pins, waiting) and hr_hierarchy_transfer.c (copies between tiers) share.
 *
 * Instances of (name, version) in tiers, under one lock; transfers are jobs of the account's worker, which runs them in the order
 * they were asked for.  So a transfer that reads what an earlier one writes needs no waiting (RAW among transfers), nor do
 * two into one target (WAW); pins wait for the transfers of their instance, and transfers, when they are asked for, for the
 * pins. */
#ifndef TIGA_HR_HIERARCHY_H
#define TIGA_HR_HIERARCHY_H

#include "hierarchy_runtime/hr_memory.h"

enum { HR_HOLDERS = 8 };

typedef struct hr_named {
    struct hr_named *next;
    char *name;
    int64_t version, bytes;
    int32_t tier;
    hr_block block;
    bool valid; /* or will be, when its incoming transfers are done */
    bool writing;
    int readers;
    uint64_t writer, holders[HR_HOLDERS]; /* threads: of the pin for writing, of the first readers */
    int incoming, outgoing; /* transfers */
    bool made_by_transfer;
    tiga_status failed; /* of the last transfer into it; seen once */
    char error[256];
} hr_named;

struct tiga_hierarchy {
    tiga_execution *account;
    hr_memory *memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    hr_named *instances;
};

/* What an instance must be free of.  One whose bytes went with a failed transfer is still what transfers out of it, asked
 * for before that, look at: free of incoming ones is it after those. */
enum { HR_OF_WRITER = 1, HR_OF_READERS = 2, HR_OF_INCOMING = 4, HR_OF_OUTGOING = 8 };

tiga_status hr_named_check(tiga_context *ctx, const tiga_hierarchy *h, const char *who, const char *name);
tiga_status hr_named_fail(tiga_context *ctx, tiga_status status, const char *who, const char *name, int64_t version,
                          int32_t tier, const char *why);
/* Takes the lock, and has it not while the bytes are had. */
tiga_status hr_named_allocate(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier,
                              int64_t bytes, bool by_transfer);
/* These with the lock held. */
hr_named *hr_named_find(const tiga_hierarchy *h, const char *name, int64_t version, int32_t tier);
void hr_named_unlink(tiga_hierarchy *h, hr_named *i); /* and frees it */
bool hr_named_is_busy(const hr_named *i, int what);
/* *out may go meanwhile, so it is looked up after each wait.  A wait for a pin of this thread is an error. */
tiga_status hr_named_wait_until(tiga_context *ctx, tiga_hierarchy *h, const char *who, const char *name,
                                int64_t version, int32_t tier, int what, hr_named **out);

#endif
