/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_LIST_FIXTURE_H
#define BOWLINE_TESTS_RPC_LIST_FIXTURE_H

/*
 * Several servers of call_fixture.h's, each with counters of its own, behind one target. The
 * client, its loop and its results are the first one's.
 */

#include "call_fixture.h"

#define LIST_SERVERS 3

struct list {
    struct calls *servers[LIST_SERVERS];
    struct calls *t; /* the first */
    char target[640];
};

/** cmocka's: the servers run, and there is no client yet; nothing left. */
int list_setup(void **state);
int list_teardown(void **state);

/** The target of all servers. */
void list_name_target(struct list *list);
/** A client of the target, with short pauses after failures; `change` may alter its options. */
void list_new_client(struct list *list, void (*change)(struct bow_client_options *options));
void list_free_client(struct list *list);

void list_start_server(struct list *list, int i);
void list_kill_server(struct list *list, int i);

/** Call and wait; the code. The result is the caller's until the next one: t->result. */
enum bow_code list_say(struct list *list, const struct bow_call_options *options);
/** Call Say or Hold with a callback: t->n_done counts. */
void list_start_say(struct list *list);
void list_start_hold(struct list *list);

/** How often server `i` ran Say. */
int list_said(struct list *list, int i);
/** How many calls of Hold are with server `i`. */
int list_held(struct list *list, int i);
/** Call, with success, until server `i` has answered `n` calls. */
void list_say_until(struct list *list, int i, int n);
/** Fail unless the last status' message has `words`. */
void list_expect_words(struct list *list, const char *words);

#endif
