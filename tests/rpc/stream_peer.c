/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A session on a plain socket; see stream_peer.h. Knows nothing of clients.
 */

#include "tests/rpc/stream_peer.h"
#include "protos/echo.bow.h"
#include "rpc/http2/session.h"
#include "rpc/native/session.h"
#include "tests/rpc/feed_in_turns.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Events */

static void note_metadata(struct stream_peer *peer, const struct bow_metadata *metadata)
{
    size_t n = 0;

    peer->metadata[0] = '\0';
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        n += (size_t)snprintf(peer->metadata + n, sizeof(peer->metadata) - n, "%s=%.*s;",
                              entry->key, (int)entry->value.len, (const char *)entry->value.data);
        assert_true(n < sizeof(peer->metadata));
    }
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct stream_peer *peer = owner;

    peer->key = key;
    peer->n_opens++;
    note_metadata(peer, &head->metadata);
    return peer;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct stream_peer *peer = owner;
    Calls__Request *request = calls__request__unpack(NULL, message->bytes.len, message->bytes.data);

    (void)stream;
    assert_non_null(request);
    uint64_t *next = &peer->next_of[request->number >> 32];
    peer->n_disordered += *next != 0 && request->number != *next;
    *next = request->number + 1;
    peer->last_number = request->number;
    peer->n_messages++;
    peer->n_half_closes += end;
    calls__request__free_unpacked(request, NULL);
    if (peer->keeps_credit) {
        peer->n_kept += bow__consumed_bytes(message->bytes.len);
    } else {
        peer->session->ops->consumed(peer->session, key, bow__consumed_bytes(message->bytes.len));
    }
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct stream_peer *peer = owner;

    (void)key;
    (void)stream;
    peer->n_half_closes++;
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    struct stream_peer *peer = owner;

    (void)key;
    (void)stream;
    (void)why;
    peer->n_resets++;
}

static void on_ready(void *owner)
{
    (void)owner;
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    (void)owner;
    (void)reason;
}

/* Life */

void stream_peer_accept(struct stream_peer *peer, struct bow_context *context, int listening,
                        bool http2)
{
    static const struct bow__session_events events = {
        .on_open = on_open,
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_reset = on_reset,
        .on_ready = on_ready,
        .on_goaway = on_goaway,
    };
    *peer = (struct stream_peer){.context = context, .fd = accept(listening, NULL, NULL)};
    assert_true(peer->fd >= 0);
    bow__pool_init(&peer->pool, context, 4);
    struct bow__session_options options = {
        .context = context,
        .pool = &peer->pool,
        .events = &events,
        .owner = peer,
        .server = true,
        .max_message_bytes = (size_t)4 << 20,
        .max_calls = 100,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .now_ns = now_ns(),
    };
    assert_int_equal(http2 ? bow__http2_session_new(&options, &peer->session)
                           : bow__native_session_new(&options, &peer->session),
                     0);
}

void stream_peer_end(struct stream_peer *peer)
{
    close(peer->fd);
    peer->session->ops->free(peer->session);
    bow__pool_fini(&peer->pool);
}

/* Bytes */

static void flush(struct stream_peer *peer)
{
    struct iovec piece;

    while (peer->session->ops->drain(peer->session, &piece, 1) > 0) {
        ssize_t n = send(peer->fd, piece.iov_base, piece.iov_len, MSG_NOSIGNAL);
        if (n <= 0) {
            peer->n_hang_ups++;
            return;
        }
        peer->session->ops->sent(peer->session, (size_t)n);
    }
}

bool stream_peer_serve(struct stream_peer *peer, int timeout_ms)
{
    struct pollfd ready = {.fd = peer->fd, .events = POLLIN};

    flush(peer);
    if (peer->n_hang_ups > 0 || poll(&ready, 1, timeout_ms) == 0) {
        return false;
    }
    ssize_t got =
        recv(peer->fd, peer->bytes + peer->n_bytes, sizeof(peer->bytes) - peer->n_bytes, 0);
    if (got <= 0) {
        peer->n_hang_ups++;
        return false;
    }
    peer->n_bytes += (size_t)got;
    ssize_t used = feed_in_turns(peer->session, peer->bytes, peer->n_bytes, now_ns());
    assert_true(used >= 0);
    peer->n_bytes -= (size_t)used;
    memmove(peer->bytes, peer->bytes + used, peer->n_bytes);
    flush(peer);
    return true;
}

void stream_peer_wait(struct stream_peer *peer, const int *counter, int n)
{
    flush(peer);
    while (*counter < n) {
        assert_true(stream_peer_serve(peer, PATIENCE_MS));
    }
}

void stream_peer_give_credit(struct stream_peer *peer)
{
    peer->keeps_credit = false;
    peer->session->ops->consumed(peer->session, peer->key, peer->n_kept);
    peer->n_kept = 0;
    flush(peer);
}

/* Sending */

void stream_peer_send_bytes(struct stream_peer *peer, const void *bytes, size_t len)
{
    struct bow__block *block = bow__block_new(peer->context, len + 1);

    assert_non_null(block);
    memcpy(block->data, bytes, len);
    assert_int_equal(peer->session->ops->send(peer->session, peer->key, 0, block, 0, len), 0);
    flush(peer);
}

static void send_reply(struct stream_peer *peer, uint32_t flags, uint64_t number, size_t n_payload)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    reply.payload.len = n_payload;
    reply.payload.data = calloc(1, n_payload + 1);
    size_t len = calls__reply__get_packed_size(&reply);
    struct bow__block *block = bow__block_new(peer->context, len + 1);
    assert_non_null(block);
    calls__reply__pack(&reply, block->data);
    free(reply.payload.data);
    assert_int_equal(peer->session->ops->send(peer->session, peer->key, flags, block, 0, len), 0);
    flush(peer);
}

void stream_peer_send(struct stream_peer *peer, uint64_t number)
{
    send_reply(peer, 0, number, 0);
}

void stream_peer_send_sized(struct stream_peer *peer, uint64_t number, size_t n_payload)
{
    send_reply(peer, 0, number, n_payload);
}

void stream_peer_reply(struct stream_peer *peer, uint64_t number)
{
    send_reply(peer, BOW__SEND_END, number, 0);
}

void stream_peer_respond(struct stream_peer *peer, const char *key, const char *value)
{
    struct bow_metadata_entry entry = {key, {(const uint8_t *)value, strlen(value)}};
    struct bow_metadata metadata = {&entry, 1};

    assert_int_equal(
        peer->session->ops->respond(peer->session, peer->key, &metadata, BOW__ENCODING_IDENTITY),
        0);
    flush(peer);
}

void stream_peer_finish_status(struct stream_peer *peer, const struct bow_status *status)
{
    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, status), 0);
    flush(peer);
}

void stream_peer_finish(struct stream_peer *peer, enum bow_code code, const char *message)
{
    struct bow_status status = {.code = code, .message = message};

    stream_peer_finish_status(peer, &status);
}
