/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A stream that watches keys, as an op's. What the changes mean, its kind knows. */

#include "etcd/core.h"
#include "etcd/op.h"
#include "etcd/rpc.bow.h"

#include <string.h>

static void on_refused(struct bow__etcd_op *op, const Bow__Etcd__WatchResponse *response)
{
    enum bow_code code = BOW_FAILED_PRECONDITION;
    const char *reason = response->cancel_reason;

    if (*reason == '\0') {
        reason = "etcd has ended the watch";
        code = BOW_UNAVAILABLE;
    } else if (strstr(reason, "permission denied") != NULL) {
        code = BOW_PERMISSION_DENIED;
    }
    op->compact_revision = response->compact_revision;
    bow__etcd_op_cancel(op, code, reason); /* the watch has ended, its stream would go on */
}

static void on_response(struct bow__etcd__watch__watch__stream stream,
                        const Bow__Etcd__WatchResponse *response, void *user)
{
    struct bow__etcd_op *op = user;

    (void)stream;
    if (op->is_halted || op->is_stale || op->is_cancelled) {
        return;
    }
    if (response->canceled) {
        on_refused(op, response);
        return;
    }
    bow__etcd_op_good(op);
    op->kind->on_watched(op, response);
}

static void on_closed(struct bow__etcd__watch__watch__stream stream, struct bow_result *result,
                      void *user)
{
    (void)stream;
    bow__etcd_op_closed(user, &result->status);
}

int bow__etcd_op_watch(struct bow__etcd_op *op, ProtobufCBinaryData key,
                       ProtobufCBinaryData range_end, int64_t revision)
{
    static const struct bow__etcd__watch__watch__stream_events events = {
        .on_message = on_response,
        .on_closed = on_closed,
    };
    Bow__Etcd__WatchCreateRequest create = BOW__ETCD__WATCH_CREATE_REQUEST__INIT;
    Bow__Etcd__WatchRequest request = BOW__ETCD__WATCH_REQUEST__INIT;
    struct bow_call_options options = bow__etcd_op_options(op, true);
    struct bow__etcd__watch__watch__stream stream;

    create.key = key;
    create.range_end = range_end;
    create.start_revision = revision;
    create.progress_notify = true;
    create.fragment = true;
    request.request_union_case = BOW__ETCD__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    int rc = bow__etcd__watch__watch__open(op->etcd->client, &options, &events, op, &stream);
    if (rc < 0) {
        return rc;
    }
    op->stream = stream.stream;
    bow__etcd_op_await(op);
    if (bow__etcd__watch__watch__stream_send(stream, &request) < 0) {
        bow__etcd_op_cancel(op, BOW_UNAVAILABLE, "the watch cannot be asked for");
    }
    return 0;
}
