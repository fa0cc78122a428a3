/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_NAMES_FIXTURE_H
#define BOWLINE_TESTS_RPC_NAMES_FIXTURE_H

/*
 * A resolver of a test's own, for targets "test:///NAME", beside the servers of list_fixture.h. It
 * knows one set at a time, says it to whoever begins to watch, and to all when it changes.
 */

#include "list_fixture.h"
#include <bowline/limits.h>
#include <bowline/resolver.h>

#define NAMES_MAX_ADDRESSES BOW_LIMIT_RESOLVED_ADDRESSES
#define NAMES_MAX_WATCHES 64

struct names {
    struct list *list;
    struct bow_resolver table;
    const struct bow_resolver *tables[1];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* What is known: the next update. */
    struct bow_resolver_address addresses[NAMES_MAX_ADDRESSES];
    size_t n_addresses;
    const char *error;
    bool is_silent;  /* nothing is said by itself to who begins to watch */
    int fail_start;  /* what start() returns */
    bool fails;      /* say each time which allocation fails then: */
    size_t fail_nth; /* counted from the update on; 0: none */
    struct names_watch *watches[NAMES_MAX_WATCHES]; /* NULL: has stopped */
    struct bow_task tasks[NAMES_MAX_WATCHES];
    struct names_telling {
        struct names *names;
        int at;
    } tellings[NAMES_MAX_WATCHES]; /* what these are for */
    int n_started;
    int n_stopped;
    int n_refreshed;
    int n_failed_starts;
    int n_said;     /* updates that were made */
    char name[128]; /* what was asked for last */
};

/** cmocka's: servers, and no client yet. */
int names_setup(void **state);
int names_teardown(void **state);

/** Know the addresses of servers `from` to below `to`; nobody is told yet. */
void names_know(struct names *names, int from, int to);
/** Know an error, or nothing at all. */
void names_know_error(struct names *names, const char *error);
/** Tell all who watch, on their loops, and wait until it was said. */
void names_tell(struct names *names);
/** Both. */
void names_say(struct names *names, int from, int to);
/** The same on the calling thread, which is the loop of all who watch. */
void names_tell_here(struct names *names);

/** Options of a client of "test:///orders", or over gRPC. */
void names_options(struct names *names, struct bow_client_options *ret_options);
/** A client like list_new_client()'s. */
void names_new_client(struct names *names, void (*change)(struct bow_client_options *options));

/** Wait until `*counter` (of names, under its lock) is at least `n`. */
void names_wait(struct names *names, const int *counter, int n);
int names_read(struct names *names, const int *counter);

#endif
