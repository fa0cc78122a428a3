/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_ETCD_FAKE_ETCD_H
#define BOWLINE_TESTS_ETCD_FAKE_ETCD_H

/*
 * An etcd in the test's own thread, on the test's clock: keys, leases, watches, transactions and a
 * user, in as much as libbowline-etcd asks of them; and the ways in which a real one fails, when a
 * test wants them. Leases end only when a test says so.
 */

#include "etcd/rpc.bow.h"
#include <bowline/etcd.h>
#include <bowline/testing.h>

#define FAKE_KEYS 4200
#define FAKE_EVENTS 4300
#define FAKE_LEASES 16
#define FAKE_WATCHES 16
#define FAKE_TEXT 256

struct fake_key {
    char key[FAKE_TEXT];
    char value[FAKE_TEXT];
    int64_t created;
    int64_t changed;
    int64_t lease;
};

struct fake_event {
    bool is_delete;
    struct fake_key key;
};

struct fake_watch {
    struct bow__etcd__watch__watch__call call; /* NULL: free */
    char key[FAKE_TEXT];
    char end[FAKE_TEXT]; /* "": one key */
    bool is_created;
    struct fake_etcd *etcd;
};

struct fake_etcd {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct fake_key keys[FAKE_KEYS];
    int n_keys;
    struct fake_event events[FAKE_EVENTS]; /* all that happened */
    int n_events;
    int64_t revision;
    int64_t compacted;
    int64_t leases[FAKE_LEASES]; /* 0: free */
    int64_t next_lease;
    struct fake_watch watches[FAKE_WATCHES];

    /* What was asked. */
    int n_ranges;
    int n_puts;
    int n_grants;
    int n_renewals;
    int n_revokes;
    int n_watches; /* created ones */
    int n_logins;

    /* What goes wrong. */
    int n_to_fail; /* so many calls, with: */
    enum bow_code code;
    const char *message;
    const char *token;    /* calls have to bring it; NULL: none */
    const char *password; /* that gets it */
    bool is_silent;       /* watches and renewals are not answered */
    bool fragments;       /* each event in a response of its own, but the last as a fragment */
};

/** Start one, on `test`. */
int fake_etcd_start(struct fake_etcd *etcd, struct bow_test *test);
void fake_etcd_stop(struct fake_etcd *etcd);
/** Options for it: on the test's loop. */
struct bow_etcd_options fake_etcd_options(struct fake_etcd *etcd);

/** What others do in it. Watches are told, in what runs next. */
void fake_etcd_put(struct fake_etcd *etcd, const char *key, const char *value);
void fake_etcd_delete(struct fake_etcd *etcd, const char *key);
/** Several keys of one revision. */
void fake_etcd_delete_two(struct fake_etcd *etcd, const char *key, const char *other);
void fake_etcd_expire(struct fake_etcd *etcd, int64_t lease);
void fake_etcd_compact(struct fake_etcd *etcd);
/** Say how far it is. */
void fake_etcd_progress(struct fake_etcd *etcd);
/** End all streams of watches. */
void fake_etcd_end_watches(struct fake_etcd *etcd, enum bow_code code);
/** End all watches, their streams stay: as one whose token has expired is ended. */
void fake_etcd_cancel_watches(struct fake_etcd *etcd, const char *reason);

/** The value; NULL: there is no such key. */
const char *fake_etcd_get(const struct fake_etcd *etcd, const char *key);
int fake_etcd_n_watches(const struct fake_etcd *etcd);

#endif
