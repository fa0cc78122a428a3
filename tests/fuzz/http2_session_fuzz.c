/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An HTTP/2 session fed with anything. The first byte chooses the side, whether
 * the preface is put in front, and what the host does in events; the second how
 * the rest is cut into pieces. Whatever comes: every call that began ends exactly
 * once, a broken connection says why, and nothing is left allocated. The host may say
 * several messages with metadata on each side, and goes on where it is told that it may.
 */
#include "base/pool.h"
#include "rpc/http2/session.h"
#include "tests/rpc/feed_in_turns.h"
#include <bowline/limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum {
    IS_SERVER = 1,
    WITH_PREFACE = 2,
    ANSWERS = 4,   /* each message with itself and OK */
    FINISHES = 8,  /* each call at its opening */
    CONSUMES = 16, /* what it gets */
    CANCELS = 32,  /* a client's call at its first message */
    LEAVES = 64,   /* says GOAWAY at the first event */
    STREAMS = 128, /* says several messages in every event, and may end its side */
};

struct host {
    struct bow__session *session;
    unsigned mode;
    long n_open;
    unsigned n_said;
};

static const struct bow_metadata_entry entries[] = {
    {"k", {(const uint8_t *)"v", 1}},
    {"a-bin", {(const uint8_t *)"\0\xff", 2}},
};
static const struct bow_metadata metadata = {entries, 2};

static void require(bool truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "http2_session_fuzz: %s\n", what);
        abort();
    }
}

static void leave(struct host *host)
{
    if ((host->mode & LEAVES) != 0) {
        host->session->ops->goaway(host->session,
                                   &(struct bow_status){.code = BOW_UNAVAILABLE, .message = ""});
    }
}

static void check_metadata(const struct bow_metadata *got)
{
    for (size_t i = 0; i < got->n; i++) {
        const struct bow_metadata_entry *entry = &got->entries[i];
        require(entry->key[0] != '\0', "a key without a name");
        require(entry->value.data[entry->value.len] == '\0', "a value that is no string");
    }
}

/* Ends the call by an operation, if that is still to be done. */
static void end(struct host *host, uint64_t key, enum bow_code code)
{
    uint32_t n_before = host->session->n_streams;

    if (host->session->server) {
        (void)host->session->ops->finish(
            host->session, key,
            &(struct bow_status){.code = code, .message = "100% ü", .metadata = metadata});
        require(host->session->ops->queued(host->session, key) == 0, "bytes of an ended call");
    } else {
        host->session->ops->cancel(host->session, key, code);
    }
    host->n_open -= n_before - host->session->n_streams;
}

static void say(struct host *host, uint64_t key, size_t len)
{
    struct bow__session *session = host->session;
    size_t cap = 0;
    uint8_t *room = len < 64 ? session->ops->reserve(session, key, 0, &cap) : NULL;

    if (room != NULL && cap >= len) {
        memset(room, 'r', len);
        (void)session->ops->commit(session, key, 0, len);
        return;
    }
    struct bow__block *block = bow__block_new(session->context, len + 1);
    require(block != NULL, "no block");
    memset(block->data, 'b', len + 1);
    if (session->ops->send(session, key, 0, block, 1, len) < 0) {
        bow__block_unref(block);
    }
}

static void say_some(struct host *host, uint64_t key)
{
    static const size_t sizes[] = {0, 5, 63, 300, 17000, 70000};

    if ((host->mode & STREAMS) == 0) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        say(host, key, sizes[host->n_said++ % 6]);
    }
    if (!host->session->server && host->n_said % 4 == 0) {
        (void)host->session->ops->half_close(host->session, key);
    }
}

/* Producers that go on. */
static void go_on(struct host *host)
{
    const struct bow__session_ops *ops = host->session->ops;
    uint64_t key = 0;

    for (int i = 0; i < 8 && ops->take_writable(host->session, &key) != NULL; i++) {
        require(ops->queued(host->session, key) <= BOW__STREAM_LOW_BYTES, "much that is little");
        say_some(host, key);
    }
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct host *host = owner;

    require(head->path.len > 0, "a request without a path");
    check_metadata(&head->metadata);
    host->n_open++;
    if ((host->mode & STREAMS) != 0 && key % 4 == 1) {
        require(
            host->session->ops->respond(host->session, key, &metadata, BOW__ENCODING_IDENTITY) == 0,
            "no response");
    }
    if ((host->mode & FINISHES) != 0) {
        end(host, key, key % 4 == 1 ? BOW_UNIMPLEMENTED : BOW_OK);
        return NULL;
    }
    leave(host);
    say_some(host, key);
    return host;
}

static void answer(struct host *host, uint64_t key, const struct bow__message *message)
{
    struct bow__session *session = host->session;
    size_t cap = 0;
    uint8_t *room = session->ops->reserve(session, key, 0, &cap);

    if (room != NULL && cap >= message->bytes.len) {
        memcpy(room, message->bytes.data, message->bytes.len);
        (void)session->ops->commit(session, key, 0, message->bytes.len);
    } else if (message->block != NULL) {
        struct bow__block *block = bow__block_ref(message->block);
        if (session->ops->send(session, key, 0, block, 0, message->bytes.len) < 0) {
            bow__block_unref(block);
        }
    }
    end(host, key, BOW_OK);
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool is_last)
{
    struct host *host = owner;

    (void)is_last;
    require(stream == host, "a message of another stream");
    require(message->bytes.len <= BOW_LIMIT_MESSAGE_BYTES, "a message beyond the limit");
    if ((host->mode & CONSUMES) != 0) {
        host->session->ops->consumed(host->session, key, message->bytes.len);
    }
    say_some(host, key);
    if ((host->mode & (host->session->server ? ANSWERS : CANCELS)) != 0) {
        answer(host, key, message);
    }
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct host *host = owner;

    require(stream == host, "a half close of another stream");
    if ((host->mode & STREAMS) != 0) {
        end(host, key, BOW_OK);
    }
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *got)
{
    require(stream == owner, "metadata of another stream");
    require(got->n > 0, "metadata that is none");
    check_metadata(got);
    say_some(owner, key);
}

static void on_end(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct host *host = owner;

    (void)key;
    require(stream == host, "the end of another stream");
    require(status->message != NULL, "a status without a message");
    check_metadata(&status->metadata);
    host->n_open--;
    leave(host);
}

static void on_ready(void *owner)
{
    leave(owner);
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    (void)owner;
    require(reason->message != NULL, "a goaway without a message");
}

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

static void drain(struct bow__session *session)
{
    struct iovec pieces[16];
    int n = 0;

    while ((n = session->ops->drain(session, pieces, 16)) > 0) {
        size_t len = 0;
        for (int i = 0; i < n; i++) {
            len += pieces[i].iov_len;
        }
        session->ops->sent(session, len);
    }
}

static bool feed(struct host *host, const uint8_t *bytes, size_t n, size_t piece)
{
    struct bow__session *session = host->session;

    for (size_t at = 0; at < n; at += piece) {
        size_t len = n - at < piece ? n - at : piece;
        if (feed_in_turns(session, bytes + at, len, 1000 + at) < 0) {
            require(session->failure.len > 0, "a failure without a reason");
            return false;
        }
        drain(session);
        go_on(host);
        if (session->ops->next_time(session) == 0 &&
            session->ops->on_time(session, 1000 + at) < 0) {
            return false;
        }
    }
    return true;
}

static void call(struct host *host, int i)
{
    static const char path[] = "/a.B/C";
    struct bow__session *session = host->session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)path, sizeof(path) - 1},
        .time_left_ns = BOW_NEVER,
    };
    uint64_t key = 0;
    size_t cap = 0;

    if (i == 1) {
        head.metadata = metadata;
    }
    require(session->ops->open(session, &head, host, &key) == 0, "a call that does not open");
    host->n_open++;
    if ((host->mode & STREAMS) != 0 && i == 2) {
        require(session->ops->begin(session, key) == 0, "a call that does not begin");
        say_some(host, key);
        return;
    }
    uint32_t flags = (host->mode & STREAMS) != 0 ? 0 : BOW__SEND_END;
    require(session->ops->reserve(session, key, flags, &cap) != NULL, "no room");
    require(session->ops->commit(session, key, flags, 0) == 0, "no commit");
}

static void run(struct bow_context *context, const uint8_t *data, size_t size)
{
    struct host host = {.mode = data[0]};
    struct bow__pool pool;
    size_t piece = data[1] == 0 ? SIZE_MAX / 2 : data[1];

    bow__pool_init(&pool, context, 2);
    struct bow__session_options options = {
        .context = context,
        .pool = &pool,
        .events = &events,
        .owner = &host,
        .server = (host.mode & IS_SERVER) != 0,
        .max_message_bytes = BOW_LIMIT_MESSAGE_BYTES,
        .max_calls = 16,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .now_ns = 1000,
    };
    require(bow__http2_session_new(&options, &host.session) == 0, "no session");
    for (int i = 0; !options.server && i < 3; i++) {
        call(&host, i);
    }
    drain(host.session);
    bool is_fine = true;
    if (options.server && (host.mode & WITH_PREFACE) != 0) {
        is_fine = feed(&host, (const uint8_t *)PREFACE, sizeof(PREFACE) - 1, SIZE_MAX / 2);
    }
    is_fine = is_fine && feed(&host, data + 2, size - 2, piece);
    drain(host.session);
    host.session->ops->fail(host.session,
                            &(struct bow_status){.code = BOW_UNAVAILABLE, .message = "lost"});
    require(host.n_open == 0, "a call that did not end once");
    require(host.session->n_streams == 0, "a stream that is left");
    host.session->ops->free(host.session);
    bow__pool_fini(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    if (size < 2) {
        return 0;
    }
    require(bow_context_new(&options, &context) == 0, "no context");
    run(context, data, size);
    require(bow_context_bytes(context) == 0, "memory that is left");
    bow_context_unref(context);
    return 0;
}
