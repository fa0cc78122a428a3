/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A session on a plain socket; see session_peer.h. Knows nothing of servers and clients.
 */

#include "tests/rpc/session_peer.h"
#include "rpc/http2/session.h"
#include "rpc/native/session.h"
#include "tests/rpc/feed_in_turns.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static void note_metadata(char *to, size_t cap, const struct bow_metadata *metadata)
{
    size_t n = 0;

    to[0] = '\0';
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        n += (size_t)snprintf(to + n, cap - n, "%s=%.*s;", entry->key, (int)entry->value.len,
                              (const char *)entry->value.data);
        assert_true(n < cap);
    }
}

/* Field 1, a varint; 0 when it is not there. */
static uint64_t number_of(struct bow_slice message)
{
    uint64_t number = 0;

    if (message.len == 0 || message.data[0] != 0x08) {
        return 0;
    }
    for (size_t i = 1; i < message.len; i++) {
        number |= (uint64_t)(message.data[i] & 0x7F) << (7 * (i - 1));
        if ((message.data[i] & 0x80) == 0) {
            break;
        }
    }
    return number;
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct session_peer *peer = owner;

    (void)head;
    peer->key = key;
    if ((size_t)peer->n_opens < sizeof(peer->keys) / sizeof(peer->keys[0])) {
        peer->keys[peer->n_opens] = key;
    }
    peer->n_opens++;
    return peer;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct session_peer *peer = owner;

    uint64_t number = number_of(message->bytes);

    (void)stream;
    (void)end;
    peer->n_disordered += peer->n_messages > 0 && number != peer->last_number + 1;
    peer->last_number = number;
    if (peer->keeps_credit) {
        peer->n_kept += bow__consumed_bytes(message->bytes.len);
    } else {
        peer->session->ops->consumed(peer->session, key, bow__consumed_bytes(message->bytes.len));
    }
    peer->n_compressed += message->compressed;
    peer->n_messages++;
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *metadata)
{
    struct session_peer *peer = owner;

    (void)key;
    (void)stream;
    note_metadata(peer->initial, sizeof(peer->initial), metadata);
    peer->n_headers++;
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    (void)owner;
    (void)key;
    (void)stream;
}

static void on_end(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct session_peer *peer = owner;

    (void)key;
    (void)stream;
    peer->code = status->code;
    peer->retry_after_ns = status->retry_after_ns;
    snprintf(peer->text, sizeof(peer->text), "%s", status->message);
    snprintf(peer->details, sizeof(peer->details), "%.*s", (int)status->details.len,
             status->details.len > 0 ? (const char *)status->details.data : "");
    note_metadata(peer->trailing, sizeof(peer->trailing), &status->metadata);
    peer->n_ends++;
}

static void on_ready(void *owner)
{
    struct session_peer *peer = owner;

    peer->n_readies++;
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct session_peer *peer = owner;

    snprintf(peer->goaway, sizeof(peer->goaway), "%s", reason->message);
    peer->n_goaways++;
}

/* Life */

void session_peer_begin(struct session_peer *peer, struct bow_context *context, int fd, bool server,
                        bool http2)
{
    static const struct bow__session_events events = {
        .on_open = on_open,
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_headers = on_headers,
        .on_status = on_end,
        .on_reset = on_end,
        .on_ready = on_ready,
        .on_goaway = on_goaway,
    };
    *peer = (struct session_peer){.fd = fd, .context = context};
    bow__pool_init(&peer->pool, context, 4);
    struct bow__session_options options = {
        .context = context,
        .pool = &peer->pool,
        .events = &events,
        .owner = peer,
        .server = server,
        .max_message_bytes = (size_t)4 << 20,
        .max_calls = 100,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .now_ns = now_ns(),
    };
    assert_int_equal(http2 ? bow__http2_session_new(&options, &peer->session)
                           : bow__native_session_new(&options, &peer->session),
                     0);
    session_peer_flush(peer);
}

void session_peer_end(struct session_peer *peer)
{
    close(peer->fd);
    peer->session->ops->free(peer->session);
    bow__pool_fini(&peer->pool);
}

/* Bytes */

void session_peer_flush(struct session_peer *peer)
{
    struct iovec piece;

    while (peer->session->ops->drain(peer->session, &piece, 1) > 0) {
        ssize_t n = send(peer->fd, piece.iov_base, piece.iov_len, MSG_NOSIGNAL);
        if (n < 0 && peer->may_be_lost) {
            peer->lost = true;
            return;
        }
        assert_true(n > 0);
        peer->session->ops->sent(peer->session, (size_t)n);
    }
}

bool session_peer_serve(struct session_peer *peer, int timeout_ms)
{
    struct pollfd ready = {.fd = peer->fd, .events = POLLIN};

    session_peer_flush(peer);
    if (poll(&ready, 1, timeout_ms) == 0) {
        return false;
    }
    ssize_t got =
        recv(peer->fd, peer->bytes + peer->n_bytes, sizeof(peer->bytes) - peer->n_bytes, 0);
    if (got <= 0 && peer->may_be_lost) {
        peer->lost = true;
        return false;
    }
    assert_true(got > 0);
    peer->n_bytes += (size_t)got;
    ssize_t used = feed_in_turns(peer->session, peer->bytes, peer->n_bytes, now_ns());
    assert_true(used >= 0);
    peer->n_bytes -= (size_t)used;
    memmove(peer->bytes, peer->bytes + used, peer->n_bytes);
    session_peer_flush(peer);
    return true;
}

void session_peer_wait(struct session_peer *peer, const int *counter, int n)
{
    session_peer_flush(peer);
    while (*counter < n) {
        assert_true(session_peer_serve(peer, PATIENCE_MS));
    }
}

void session_peer_give_credit(struct session_peer *peer)
{
    peer->session->ops->consumed(peer->session, peer->key, peer->n_kept);
    peer->n_kept = 0;
    session_peer_flush(peer);
}

/* Calls */

void session_peer_open(struct session_peer *peer, const char *path, uint64_t time_left_ns)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)path, strlen(path)},
        .time_left_ns = time_left_ns,
        .encoding = peer->encoding,
    };

    assert_int_equal(peer->session->ops->open(peer->session, &head, peer, &peer->key), 0);
}

void session_peer_begin_stream(struct session_peer *peer, const char *path, uint64_t time_left_ns,
                               const struct bow_metadata *metadata)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)path, strlen(path)},
        .time_left_ns = time_left_ns,
        .encoding = peer->encoding,
        .metadata = metadata != NULL ? *metadata : (struct bow_metadata)BOW_METADATA_INIT,
    };

    assert_int_equal(peer->session->ops->open(peer->session, &head, peer, &peer->key), 0);
    assert_int_equal(peer->session->ops->begin(peer->session, peer->key), 0);
    session_peer_flush(peer);
}

void session_peer_half_close(struct session_peer *peer)
{
    assert_int_equal(peer->session->ops->half_close(peer->session, peer->key), 0);
    session_peer_flush(peer);
}

void session_peer_cancel(struct session_peer *peer)
{
    peer->session->ops->cancel(peer->session, peer->key, BOW_CANCELLED);
    session_peer_flush(peer);
}

void session_peer_send(struct session_peer *peer, uint32_t flags, const void *bytes, size_t len)
{
    struct bow__block *block = bow__block_new(peer->context, len + 1);

    assert_non_null(block);
    memcpy(block->data, bytes, len);
    assert_int_equal(peer->session->ops->send(peer->session, peer->key, flags, block, 0, len), 0);
    session_peer_flush(peer);
}
