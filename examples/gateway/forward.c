/* SPDX-License-Identifier: 0BSD */
/* Both sides of a call are on one loop, so that nothing here is locked, and each holds the other
 * back: who cannot send reads no further. So a call holds a window of messages in each direction,
 * and what one side wrote before it was told, whatever passes through. */

#include "forward.h"
#include <errno.h>
#include <stdlib.h>

struct forward {
    struct bow_call *call;     /* in front; NULL once it has ended */
    struct bow_stream *stream; /* behind; likewise */
};

static void free_if_over(struct forward *forward)
{
    if (forward->call == NULL && forward->stream == NULL) {
        free(forward);
    }
}

/* What cannot be handed on for want of memory, or in a header that the client does not take. */
static void give_up(struct forward *forward, const char *what)
{
    if (forward->call != NULL) {
        bow_call_fail(forward->call, BOW_RESOURCE_EXHAUSTED, "the gateway cannot hand on %s", what);
    }
}

/* From the client in front to the server behind. */

static void on_request(struct bow_call *call, struct bow_slice bytes, void *user)
{
    struct forward *forward = user;

    if (forward->stream == NULL) {
        return; /* it has answered, and the call is about to end */
    }
    int rc = bow_stream_send_bytes(forward->stream, bytes);
    if (rc < 0 && rc != -ECANCELED) {
        give_up(forward, "a request");
    } else if (!bow_stream_is_writable(forward->stream)) {
        bow_call_pause(call);
    }
}

static void on_behind_writable(struct bow_stream *stream, void *user)
{
    struct forward *forward = user;

    (void)stream;
    if (forward->call != NULL) {
        bow_call_resume(forward->call);
    }
}

static void on_half_close(struct bow_call *call, void *user)
{
    struct forward *forward = user;

    (void)call;
    if (forward->stream != NULL) {
        bow_stream_half_close(forward->stream);
    }
}

/* Whoever ended it, the one behind ends too: options.parent has seen to that. */
static void on_call_closed(struct bow_call *call, const struct bow_status *status, void *user)
{
    struct forward *forward = user;

    (void)call;
    (void)status;
    forward->call = NULL;
    if (forward->stream != NULL) {
        bow_stream_cancel(forward->stream);
    }
    free_if_over(forward);
}

/* And back. */

static void on_headers(struct bow_stream *stream, const struct bow_metadata *initial, void *user)
{
    struct forward *forward = user;

    (void)stream;
    for (size_t i = 0; i < initial->n && forward->call != NULL; i++) {
        const struct bow_metadata_entry *entry = &initial->entries[i];
        if (bow_call_add_initial(forward->call, entry->key, entry->value) < 0) {
            give_up(forward, "the answer's metadata");
            return;
        }
    }
}

static void on_answer(struct bow_stream *stream, struct bow_slice bytes, void *user)
{
    struct forward *forward = user;

    if (forward->call == NULL) {
        return;
    }
    int rc = bow_call_send_bytes(forward->call, bytes);
    if (rc < 0 && rc != -ECANCELED) {
        give_up(forward, "an answer");
    } else if (!bow_call_is_writable(forward->call)) {
        bow_stream_pause(stream);
    }
}

static void on_front_writable(struct bow_call *call, void *user)
{
    struct forward *forward = user;

    (void)call;
    if (forward->stream != NULL) {
        bow_stream_resume(forward->stream);
    }
}

static void finish(struct bow_call *call, const struct bow_status *status)
{
    for (size_t i = 0; i < status->metadata.n; i++) {
        const struct bow_metadata_entry *entry = &status->metadata.entries[i];
        if (bow_call_add_trailing(call, entry->key, entry->value) < 0) {
            bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "the gateway cannot hand on metadata");
            return;
        }
    }
    bow_call_finish(call);
}

static void on_stream_closed(struct bow_stream *stream, struct bow_result *result, void *user)
{
    struct forward *forward = user;

    if (forward->call != NULL && result->status.code == BOW_OK) {
        finish(forward->call, &result->status);
    } else if (forward->call != NULL) {
        bow_call_fail_status(forward->call, &result->status);
    }
    forward->stream = NULL;
    bow_stream_unref(stream);
    free_if_over(forward);
}

void forward_call(struct bow_call *call, void *user)
{
    static const struct bow_generic_call_events in_front = {
        .on_message = on_request,
        .on_half_close = on_half_close,
        .on_writable = on_front_writable,
        .on_closed = on_call_closed,
    };
    static const struct bow_generic_stream_events behind = {
        .on_headers = on_headers,
        .on_message = on_answer,
        .on_writable = on_behind_writable,
        .on_closed = on_stream_closed,
    };
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct forward *forward = calloc(1, sizeof(*forward));

    if (forward == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "the gateway has no memory for the call");
        return;
    }
    options.parent = call; /* its deadline, its end and its trace */
    options.metadata = bow_call_metadata(call);
    int rc = bow_client_open_generic(user, bow_call_path(call), &options, &behind, forward,
                                     &forward->stream);
    if (rc < 0) {
        free(forward);
        bow_call_fail(call, BOW_UNAVAILABLE, "the gateway cannot hand on the call (errno %d)", -rc);
        return;
    }
    forward->call = call;
    bow_call_listen(call, &in_front, forward);
}
