/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_ETCD_ETCD_FIXTURE_H
#define BOWLINE_TESTS_ETCD_ETCD_FIXTURE_H

/*
 * A bow_etcd on an etcd that the test plays, on the test's clock, and what was told to those who
 * listen.
 */

#include "fake_etcd.h"

#include <bowline/limits.h>
#include <bowline/loop.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define JSON "{\"Op\":0,\"Addr\":\"%s\",\"Metadata\":%s}"
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* All that was told to one who listens, as texts. */
struct heard {
    char last[4096];  /* of a watch: "ADDRESS ADDRESS " or "error: …"; else the last event */
    size_t n_servers; /* of the last update */
    int n_updates;
    int n_errors;
    int n_closed;
    int n_registered;
    int n_acquired;
    int n_lost;
    int64_t lease;
    int64_t token;
    int64_t revision;
    bool ends_inside; /* its handle is let go of in the next event */
};

extern struct bow_test *test;
extern struct fake_etcd fake;
extern struct bow_etcd *etcd;
extern char logged[4096];

void run(void);
void advance(uint64_t ns);
int setup(void **state);
int teardown(void **state);
void make(void);
extern const struct bow_etcd_watch_events watch_events;
struct bow_etcd_watch *watch_it(struct heard *heard);
void put(const char *address);
void end_watch(struct bow_etcd_watch *watch, struct heard *heard);
extern const struct bow_etcd_registration_events registration_events;
struct bow_etcd_registration_options mine(struct heard *heard);
struct bow_etcd_registration *register_it(struct heard *heard);
void end_registration(struct bow_etcd_registration *registration, struct heard *heard);
extern const struct bow_etcd_lock_events lock_events;
struct bow_etcd_lock *lock_it(struct heard *heard);
void end_lock(struct bow_etcd_lock *lock, struct heard *heard);

#endif
