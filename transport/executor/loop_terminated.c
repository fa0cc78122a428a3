/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Futures that are done when a loop has terminated. Knows nothing of how it ends. */

#include "base/list.h"
#include "transport/executor/future.h"
#include "transport/loop/loop.h"

#include <errno.h>

static void keep_promise(struct bow__loop_ending *ending)
{
    struct bow_promise *promise = BOW__CONTAINER(ending, struct bow_promise, ending);

    bow_promise_succeed(promise, NULL);
    bow_promise_unref(promise);
}

int bow_loop_terminated(struct bow_loop *loop, const struct bow_promise_options *options,
                        struct bow_future **ret_future)
{
    const struct bow__event_executor worker = {.loop = loop};
    struct bow_promise *promise = NULL;

    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    int rc = bow_promise_new(bow_loop_context(loop), options, &promise);
    if (rc < 0) {
        return rc;
    }
    bow__promise_set_worker(promise, &worker);
    *ret_future = bow_future_ref(bow_promise_future(promise));
    promise->ending.fn = keep_promise;
    bow__loop_on_terminated(loop, &promise->ending);
    return 0;
}
