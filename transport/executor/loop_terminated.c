/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Futures that are done when a loop has terminated. Knows nothing of how it ends. */

#include "transport/executor/future.h"
#include "transport/loop/loop_core.h"

#include <errno.h>

void bow__loop_tell_terminated(struct bow_loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    struct bow_promise *promise = NULL;
    if (bow__loop_state(loop) == BOW_LOOP_TERMINATED) {
        promise = loop->end_promises;
        loop->end_promises = NULL;
    }
    pthread_mutex_unlock(&loop->mutex);
    while (promise != NULL) {
        struct bow_promise *next = promise->next;
        bow_promise_succeed(promise, NULL);
        bow_promise_unref(promise);
        promise = next;
    }
}

int bow_loop_terminated(struct bow_loop *loop, const struct bow_promise_options *options,
                        struct bow_future **ret_future)
{
    const struct bow__event_executor worker = {.loop = loop};
    struct bow_promise *promise = NULL;

    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    int rc = bow_promise_new(loop->context, options, &promise);
    if (rc < 0) {
        return rc;
    }
    bow__promise_set_worker(promise, &worker);
    *ret_future = bow_future_ref(bow_promise_future(promise));
    pthread_mutex_lock(&loop->mutex);
    promise->next = loop->end_promises;
    loop->end_promises = promise;
    pthread_mutex_unlock(&loop->mutex);
    bow__loop_tell_terminated(loop); /* in case it has */
    return 0;
}
