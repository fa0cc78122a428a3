/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CALL_SET_H
#define BOWLINE_CALL_SET_H

/*
 * Several unary calls, of one client or of many, and one callback when all of them are
 * done.
 *
 *     new ──► start* ──► commit ──► (all are done) ──► done, once ──► free
 *
 *     struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;
 *     struct bow_call_set *set;
 *     options.max_calls = 2;
 *     options.cancels_rest = true;
 *     int rc = bow_call_set_new(bow_call_loop(call), &options, on_both, call, &set);
 *     ...
 *     rc = bow_call_set_start(set, stock, shop__stock__look__method(), &look.base, NULL);
 *     rc = bow_call_set_start(set, bank, shop__bank__charge__method(), &charge.base, NULL);
 *     bow_call_set_commit(set);
 *
 * The results stay until the set is freed. `done` is never called from inside a function of the
 * set. One thread at a time starts calls.
 */

#include <bowline/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_call_set;

/** All calls of the committed set are done. */
typedef void (*bow_call_set_fn)(struct bow_call_set *set, void *user);

/** How many calls a set takes, and whether one that fails ends the others. */
struct bow_call_set_options {
    size_t size; /* sizeof this struct, set by the INIT */
    uint32_t max_calls;
    bool cancels_rest; /* the first call that does not end with OK cancels all the others */
};

#define BOW_CALL_SET_OPTIONS_INIT BOW__INIT(struct bow_call_set_options, )

/**
 * Make an empty set, whose `done` will run on `loop`.
 *
 * Thread:  any
 * Owns:    shares `loop`; gives `*ret_set`, free with bow_call_set_free()
 * Returns: 0; -EINVAL for options whose size is not a known one, or no max_calls; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_call_set_new(struct bow_loop *loop,
                                             const struct bow_call_set_options *options,
                                             bow_call_set_fn done, void *user,
                                             struct bow_call_set **ret_set);

/**
 * Start a call of the set, as bow_client_start().
 *
 * Thread:  any; before bow_call_set_commit()
 * Returns: the call's number in the set, from 0 on; -ENOSPC after max_calls; -EINVAL after the
 *          commit; -ECANCELED when the set has been cancelled; or as bow_client_start(). After
 *          an error the set is as it was.
 */
BOW_EXPORT BOW_MUST_USE int bow_call_set_start(struct bow_call_set *set, struct bow_client *client,
                                               const struct bow_method *method,
                                               const ProtobufCMessage *request,
                                               const struct bow_call_options *options);

/** No further call follows: `done` runs when all are done (also when there are none), or, on
 * a loop that shuts down, not at all. Thread: any; once. */
BOW_EXPORT void bow_call_set_commit(struct bow_call_set *set);

/** Cancel the calls that are not done, which end with CANCELLED. Idempotent. Thread: any. */
BOW_EXPORT void bow_call_set_cancel(struct bow_call_set *set);

/** How many calls were started. Thread: in `done`, and after it. */
BOW_EXPORT uint32_t bow_call_set_n_calls(const struct bow_call_set *set);
/** The result of one of them, which lives as long as the set. Thread: in `done`, and after it. */
BOW_EXPORT const struct bow_result *bow_call_set_result(const struct bow_call_set *set,
                                                        uint32_t number);

/**
 * Free the set and its results. One whose calls are not all done is cancelled, and `done` does
 * not run. NULL is allowed.
 *
 * Thread:  any before the commit; the set's loop after it
 */
BOW_EXPORT void bow_call_set_free(struct bow_call_set *set);

#ifdef __cplusplus
}
#endif
#endif
