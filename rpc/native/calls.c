/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of the client: how one begins, and how it is given up. A call's REQUEST is
 * written where its frame will lie, in room that waits for the first message.
 */

#include "rpc/core/codec/wire.h"
#include "rpc/core/header_limit.h"
#include "rpc/core/metadata.h"
#include "rpc/native/internal.h"

#include "base/clock.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>

/* A number that a request header may get beside its path: tag and varint. */
#define METHOD_FIELD_BYTES ((size_t)6)

static bool takes_calls(const struct bow__native *session)
{
    return !session->base.server && !session->broken && !session->peer_leaves &&
           session->drain == BOW__NATIVE_SERVING && session->next_id <= BOW__FRAME_STREAM_MAX;
}

static bool has_slot(const struct bow__native *session)
{
    return session->base.n_streams < session->peer.max_calls &&
           (session->settings_seen || !session->needs_settings);
}

bool bow__native_can_open(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);

    return takes_calls(session) && has_slot(session);
}

/* By the number that the path is bound to, binding one where that is possible. */
static void name_method(struct bow__native *session, const struct bow__request_head *head,
                        struct bow__header_request *request)
{
    if (head->path_key == 0 || head->path.len > BOW_LIMIT_BOUND_PATH_BYTES) {
        return;
    }
    uintptr_t number = (uintptr_t)bow__map_get(&session->numbers, head->path_key);
    if (number != 0) {
        request->method = (uint32_t)number;
        request->path.len = 0;
        return;
    }
    number = session->n_bound + 1;
    if (session->n_bound >= session->peer.max_bound_methods ||
        bow__map_put(&session->numbers, head->path_key, (void *)number) < 0) {
        return;
    }
    session->n_bound++;
    session->new_binding = head->path_key;
    request->method = (uint32_t)number;
}

static void unbind_new(struct bow__native *session)
{
    if (session->new_binding != 0) {
        bow__map_remove(&session->numbers, session->new_binding);
        session->n_bound--;
        session->new_binding = 0;
    }
}

static struct bow__header_request request_of(const struct bow__request_head *head)
{
    uint64_t ns = head->time_left_ns;

    /* Rounded up: what is left, be it little, is not nothing. */
    return (struct bow__header_request){
        .path = head->path,
        .has_time_left = ns != BOW_NEVER,
        .time_left_us = ns / 1000 + (ns % 1000 > 0),
        .metadata = head->metadata,
        .encoding = bow__header_encoding_name(head->encoding),
    };
}

/* As the peer counts it: block, or metadata. */
static size_t header_bytes(const struct bow__header_request *request)
{
    size_t n_block = bow__header_request_size(request) + METHOD_FIELD_BYTES;
    size_t n_metadata = bow__metadata_bytes(&request->metadata);

    return n_block > n_metadata ? n_block : n_metadata;
}

/* What a peer takes that has not said it yet may be more than what holds until then. */
static int check_header(struct bow__native *session, size_t n)
{
    size_t max = session->peer.max_header_bytes;

    if (n <= max) {
        return 0;
    }
    if (!session->settings_seen && n <= BOW_LIMIT_HEADER_BYTES_MAX) {
        session->needs_settings = true;
        return -EAGAIN;
    }
    return bow__header_limit_refuse(&session->base, n, max);
}

static int encode_request(struct bow__native *session, struct bow__native_stream *stream,
                          const struct bow__request_head *head)
{
    struct bow__header_request request = request_of(head);

    int rc = check_header(session, header_bytes(&request));
    if (rc < 0) {
        return rc;
    }
    name_method(session, head, &request);
    size_t n_block = bow__header_request_size(&request);
    size_t n_prefix = BOW__FRAME_HEADER_BYTES + bow__wire_varint_size(n_block) + n_block;
    if (!bow__native_make_room(session, stream, BOW__FRAME_REQUEST, n_prefix)) {
        unbind_new(session);
        return -ENOMEM;
    }
    uint8_t *at = session->room.at + BOW__FRAME_HEADER_BYTES;
    bow__header_request_encode(bow__wire_write_varint(at, n_block), &request);
    return 0;
}

int bow__native_open(struct bow__session *base, const struct bow__request_head *head, void *stream,
                     uint64_t *ret_key)
{
    struct bow__native *session = bow__native_of(base);

    if (!takes_calls(session)) {
        return -EPIPE;
    }
    if (!has_slot(session)) {
        return -EAGAIN;
    }
    bow__native_drop_room(session);
    struct bow__native_stream *opened = bow__native_stream_new(session, session->next_id, stream);
    if (opened == NULL) {
        return -ENOMEM;
    }
    int rc = encode_request(session, opened, head);
    if (rc < 0) {
        bow__native_stream_end(session, opened);
        return rc;
    }
    session->next_id += 2;
    session->retire_due = session->next_id > BOW__FRAME_STREAM_MAX;
    *ret_key = opened->id;
    return 0;
}

void bow__native_abandon(struct bow__session *base, uint64_t key)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    assert(stream != NULL && session->room.key == key);
    bow__native_drop_room(session);
    unbind_new(session);
    bow__native_stream_end(session, stream);
}

int bow__native_begin(struct bow__session *base, uint64_t key)
{
    struct bow__native *session = bow__native_of(base);

    if (bow__native_stream_find(session, key) == NULL) {
        return -ENOENT;
    }
    assert(session->room.key == key && session->room.type == BOW__FRAME_REQUEST);
    bow__native_put_room(session, 0, 0);
    return 0;
}

void bow__native_cancel(struct bow__session *base, uint64_t key, enum bow_code code)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__frame frame = {.length = 4, .type = BOW__FRAME_CANCEL, .stream = key};
    uint8_t body[4];

    if (stream == NULL) {
        return;
    }
    bow__put_u32(body, (uint32_t)code);
    (void)bow__native_put_frame(session, &frame, body);
    bow__native_stream_end(session, stream);
}
