/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The pair's bytes and logs, and frames by hand. Knows the session through its table only. */
#include "tests/rpc/http2_pair.h"
#include "rpc/http2/session.h"
#include "tests/rpc/feed_in_turns.h"

#include <bowline/limits.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

static void write_log(struct side *side, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void write_log(struct side *side, const char *format, ...)
{
    va_list args;

    if (side->is_muted) {
        return;
    }
    va_start(args, format);
    int n = vsnprintf(side->log + side->log_len, SIDE_LOG_BYTES - side->log_len, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < SIDE_LOG_BYTES - side->log_len);
    side->log_len += (size_t)n;
}

static void call_hook(struct side *side, enum side_event event, uint64_t key)
{
    if (side->hook != NULL) {
        side->hook(side, event, key);
    }
}

static void log_metadata(struct side *side, const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        bool binary = strstr(entry->key, "-bin") != NULL;
        /* So that one of ASCII is a string. */
        assert_int_equal(entry->value.data[entry->value.len], 0);
        write_log(side, " %s=", entry->key);
        for (size_t j = 0; binary && j < entry->value.len; j++) {
            write_log(side, "%02x", entry->value.data[j]);
        }
        write_log(side, "%s", binary ? "" : (const char *)entry->value.data);
    }
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct side *side = owner;

    write_log(side, "open %" PRIu64 " %.*s", key, (int)head->path.len,
              (const char *)head->path.data);
    if (head->time_left_ns != BOW_NEVER) {
        write_log(side, " %" PRIu64, head->time_left_ns);
    }
    log_metadata(side, &head->metadata);
    write_log(side, "\n");
    side->n_open++;
    call_hook(side, SIDE_OPEN, key);
    return side;
}

static void log_message(struct side *side, uint64_t key, const struct bow__message *message,
                        bool end)
{
    const struct bow_slice *bytes = &message->bytes;

    write_log(side, "message %" PRIu64 " %s%zu", key,
              !message->compressed                      ? ""
              : message->encoding == BOW__ENCODING_GZIP ? "gzip "
                                                        : "? ",
              bytes->len);
    if (bytes->len > 0 && bytes->len <= 64) {
        write_log(side, " %.*s", (int)bytes->len, (const char *)bytes->data);
    }
    write_log(side, end ? " end\n" : "\n");
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct side *side = owner;

    (void)stream;
    side->n_messages++;
    side->n_bytes += message->bytes.len;
    bool is_pattern = message->bytes.len > 64 && !side->is_muted;
    for (size_t i = 1; is_pattern && i < message->bytes.len; i++) {
        assert_int_equal((uint8_t)(message->bytes.data[i] - message->bytes.data[i - 1]), 1);
    }
    log_message(side, key, message, end);
    if (!side->keeps) {
        side->session->ops->consumed(side->session, key, bow__consumed_bytes(message->bytes.len));
    }
    call_hook(side, SIDE_MESSAGE, key);
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct side *side = owner;

    (void)stream;
    write_log(side, "half_close %" PRIu64 "\n", key);
    call_hook(side, SIDE_HALF_CLOSE, key);
}

static void log_status(struct side *side, const char *event, uint64_t key,
                       const struct bow_status *status)
{
    side->n_ended++;
    side->n_open--;
    write_log(side, "%s %" PRIu64 " %s", event, key, bow_code_name(status->code));
    if (status->message[0] != '\0') {
        write_log(side, " %s", status->message);
    }
    if (status->details.len > 0) {
        write_log(side, " [%.*s]", (int)status->details.len, (const char *)status->details.data);
    }
    if (status->retry_after_ns > 0) {
        write_log(side, " retry %" PRIu64, status->retry_after_ns);
    }
    log_metadata(side, &status->metadata);
    write_log(side, status->not_processed ? " not_processed\n" : "\n");
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *metadata)
{
    struct side *side = owner;

    (void)stream;
    write_log(side, "headers %" PRIu64, key);
    log_metadata(side, metadata);
    write_log(side, "\n");
}

static void on_status(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct side *side = owner;

    (void)stream;
    log_status(side, "status", key, status);
    call_hook(side, SIDE_STATUS, key);
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    struct side *side = owner;

    (void)stream;
    log_status(side, "reset", key, why);
    call_hook(side, SIDE_RESET, key);
}

static void on_ready(void *owner)
{
    struct side *side = owner;

    /* A server's says no more than that settings came, which each connection begins with. */
    if (side->session != NULL && side->session->server) {
        return;
    }
    write_log(side, "ready\n");
    call_hook(side, SIDE_READY, 0);
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct side *side = owner;

    write_log(side, "goaway %s\n", reason->message);
    call_hook(side, SIDE_GOAWAY, 0);
}

static void on_refused(void *owner, struct bow_slice path, const struct bow_status *status,
                       const char *limit)
{
    write_log(owner, "refused %.*s %s", (int)path.len, (const char *)path.data, limit);
    if (status->retry_after_ns > 0) {
        write_log(owner, " retry %" PRIu64, status->retry_after_ns);
    }
    write_log(owner, "\n");
}

const struct bow__session_events side_events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_headers = on_headers,
    .on_status = on_status,
    .on_reset = on_reset,
    .on_ready = on_ready,
    .on_goaway = on_goaway,
    .on_refused = on_refused,
};

struct bow__session_options pair_options(struct pair *pair, struct side *side, bool server)
{
    static const char authority[] = "test:1";

    return (struct bow__session_options){
        .context = pair->context,
        .pool = &pair->pool,
        .events = &side_events,
        .owner = side,
        .server = server,
        .max_message_bytes = BOW_LIMIT_MESSAGE_BYTES,
        .max_calls = BOW_LIMIT_CALLS_IN_FLIGHT,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .authority = {(const uint8_t *)authority, sizeof(authority) - 1},
        .now_ns = pair->now_ns,
    };
}

void pair_init(struct pair *pair, struct bow_context *context)
{
    *pair = (struct pair){.context = context, .now_ns = PAIR_START_NS};
    pair->client.pair = pair;
    pair->server.pair = pair;
    bow__pool_init(&pair->pool, context, 2);
}

int side_begin(struct side *side, const struct bow__session_options *options)
{
    return bow__http2_session_new(options, &side->session);
}

int pair_begin(struct pair *pair, struct bow_context *context)
{
    pair_init(pair, context);
    struct bow__session_options options = pair_options(pair, &pair->client, false);
    int rc = side_begin(&pair->client, &options);
    if (rc < 0) {
        return rc;
    }
    options = pair_options(pair, &pair->server, true);
    return side_begin(&pair->server, &options);
}

static void side_end(struct side *side)
{
    if (side->session != NULL) {
        side->session->ops->free(side->session);
    }
}

void pair_end(struct pair *pair)
{
    side_end(&pair->client);
    side_end(&pair->server);
    bow__pool_fini(&pair->pool);
}

/* Returns how many of the bytes the session wanted in a place of its own. */
static size_t fill_room(struct side *side, const uint8_t *bytes, size_t n)
{
    size_t len = 0;
    size_t n_behind = 0;

    uint8_t *room = side->session->ops->room(side->session, &len, &n_behind);
    if (room == NULL || side->pair->no_rooms) {
        return 0;
    }
    memset(room, 0xee, len + n_behind);
    len = len < n ? len : n;
    memcpy(room, bytes, len);
    side->rc = side->session->ops->received(side->session, len, side->pair->now_ns);
    side->n_rooms++;
    return len;
}

int side_feed(struct side *side, const void *bytes, size_t n, size_t piece)
{
    const uint8_t *at = bytes;

    while (n > 0 && side->rc == 0) {
        size_t len = n < piece ? n : piece;
        size_t filled = fill_room(side, at, len);
        if (filled > 0) {
            at += filled;
            n -= filled;
            continue;
        }
        ssize_t used = feed_in_turns(side->session, at, len, side->pair->now_ns);
        if (used < 0) {
            side->rc = (int)used;
            break;
        }
        assert_int_equal(used, len);
        at += len;
        n -= len;
    }
    return side->rc;
}

size_t side_drain(struct side *side, uint8_t *bytes, size_t cap)
{
    struct iovec pieces[8];
    size_t n = 0;

    while (n < cap) {
        int count = side->session->ops->drain(side->session, pieces, 8);
        size_t taken = 0;
        for (int i = 0; i < count && n < cap; i++) {
            size_t len = pieces[i].iov_len < cap - n ? pieces[i].iov_len : cap - n;
            memcpy(bytes + n, pieces[i].iov_base, len);
            n += len;
            taken += len;
        }
        if (taken == 0) {
            break;
        }
        side->session->ops->sent(side->session, taken);
    }
    return n;
}

void side_fail(struct side *side, const struct bow_status *status)
{
    side->has_failed = true;
    /* In parentheses, for cmocka has a macro of that name. */
    (side->session->ops->fail)(side->session, status);
}

static void fail_side(struct side *side)
{
    if (!side->has_failed) {
        side_fail(side, &(struct bow_status){
                            .code = side->session->failure_code,
                            .message = side->session->failure.bytes,
                        });
    }
}

static bool carry(struct side *from, struct side *to, size_t piece)
{
    static uint8_t bytes[200000];
    size_t n = side_drain(from, bytes, sizeof(bytes));

    if (n == 0) {
        return false;
    }
    side_feed(to, bytes, n, piece);
    return true;
}

static bool run_time(struct side *side)
{
    if (side->rc != 0 || side->session->ops->next_time(side->session) > side->pair->now_ns) {
        return false;
    }
    side->rc = side->session->ops->on_time(side->session, side->pair->now_ns);
    return true;
}

void pair_run(struct pair *pair, size_t piece)
{
    bool moved = true;

    while (moved) {
        moved = carry(&pair->client, &pair->server, piece);
        moved = carry(&pair->server, &pair->client, piece) || moved;
        moved = run_time(&pair->client) || moved;
        moved = run_time(&pair->server) || moved;
    }
    if (pair->client.rc != 0 || pair->server.rc != 0) {
        fail_side(&pair->client);
        fail_side(&pair->server);
    }
}

int side_send_block(struct side *side, uint64_t key, uint32_t flags, uint8_t first, size_t len)
{
    struct bow__block *block = bow__block_new(side->pair->context, len + 3);
    if (block == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < len; i++) {
        block->data[3 + i] = (uint8_t)(first + i);
    }
    int rc = side->session->ops->send(side->session, key, flags, block, 3, len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

int side_send(struct side *side, uint64_t key, uint32_t flags, const char *text)
{
    const struct bow__session_ops *ops = side->session->ops;
    size_t len = strlen(text);
    size_t cap = 0;

    uint8_t *room = ops->reserve(side->session, key, flags, &cap);
    if (room != NULL && cap >= len) {
        memcpy(room, text, len);
        return ops->commit(side->session, key, flags, len);
    }
    struct bow__block *block = bow__block_new(side->pair->context, len + 1);
    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, text, len);
    int rc = ops->send(side->session, key, flags, block, 0, len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

int side_call(struct side *side, const char *path, const char *text, uint64_t time_left_ns,
              uint64_t *ret_key)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)path, strlen(path)},
        .time_left_ns = time_left_ns,
    };

    int rc = side->session->ops->open(side->session, &head, side, ret_key);
    if (rc < 0) {
        return rc;
    }
    rc = side_send(side, *ret_key, BOW__SEND_END, text);
    if (rc < 0) {
        side->session->ops->abandon(side->session, *ret_key);
        return rc;
    }
    side->n_open++;
    return 0;
}

void side_clear(struct side *side)
{
    side->log_len = 0;
    side->log[0] = '\0';
}

void side_expect(struct side *side, const char *lines)
{
    assert_string_equal(side->log, lines);
    side_clear(side);
}

bool side_has(const struct side *side, const char *part)
{
    return strstr(side->log, part) != NULL;
}

void bytes_put(struct bytes *bytes, const void *data, size_t len)
{
    assert_true(len <= sizeof(bytes->data) - bytes->len);
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

void bytes_frame(struct bytes *bytes, uint8_t type, uint8_t flags, uint32_t stream,
                 const void *payload, size_t len)
{
    uint8_t header[9] = {(uint8_t)(len >> 16),
                         (uint8_t)(len >> 8),
                         (uint8_t)len,
                         type,
                         flags,
                         (uint8_t)(stream >> 24),
                         (uint8_t)(stream >> 16),
                         (uint8_t)(stream >> 8),
                         (uint8_t)stream};

    bytes_put(bytes, header, sizeof(header));
    if (len > 0) {
        bytes_put(bytes, payload, len);
    }
}

void bytes_preface(struct bytes *bytes)
{
    bytes_put(bytes, HTTP2_PREFACE, sizeof(HTTP2_PREFACE) - 1);
    bytes_frame(bytes, 4, 0, 0, NULL, 0);
}

/* A literal that is not indexed, texts without Huffman: RFC 7541, 6.2.2. */
static void put_text(struct bytes *bytes, const char *text, size_t len)
{
    if (len < 127) {
        bytes_put(bytes, &(uint8_t){(uint8_t)len}, 1);
    } else {
        size_t rest = len - 127;
        bytes_put(bytes, &(uint8_t){127}, 1);
        for (; rest >= 128; rest >>= 7) {
            bytes_put(bytes, &(uint8_t){(uint8_t)(rest | 128)}, 1);
        }
        bytes_put(bytes, &(uint8_t){(uint8_t)rest}, 1);
    }
    bytes_put(bytes, text, len);
}

static void put_field(struct bytes *bytes, const char *field)
{
    /* The name may begin with a colon of its own. */
    const char *colon = strstr(field + 1, ": ");

    assert_non_null(colon);
    bytes_put(bytes, &(uint8_t){0}, 1);
    put_text(bytes, field, (size_t)(colon - field));
    put_text(bytes, colon + 2, strlen(colon + 2));
}

void bytes_headers(struct bytes *bytes, uint8_t flags, uint32_t stream, const char *const *fields)
{
    static struct bytes block;

    block.len = 0;
    for (; *fields != NULL; fields++) {
        put_field(&block, *fields);
    }
    bytes_frame(bytes, 1, flags, stream, block.data, block.len);
}

void bytes_request(struct bytes *bytes, uint8_t flags, uint32_t stream, const char *const *more)
{
    const char *fields[512] = {":method: POST", ":scheme: http", ":path: /a.B/C",
                               ":authority: t", "te: trailers",  "content-type: application/grpc"};
    size_t n = 6;

    for (; more != NULL && *more != NULL; more++) {
        assert_true(n < 511);
        fields[n++] = *more;
    }
    fields[n] = NULL;
    bytes_headers(bytes, flags, stream, fields);
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static size_t print_headers(nghttp2_hd_inflater *inflater, const uint8_t *at, size_t len,
                            char *text, size_t cap)
{
    size_t n = 0;

    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, at, len, 1);
        assert_true(used >= 0);
        at += used;
        len -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
            n += (size_t)snprintf(text + n, cap - n, " %.*s=%.*s", (int)nv.namelen,
                                  (const char *)nv.name, (int)nv.valuelen, (const char *)nv.value);
            assert_true(n < cap);
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
            nghttp2_hd_inflate_end_headers(inflater);
            return n;
        }
    }
}

static size_t print_payload(nghttp2_hd_inflater *inflater, uint8_t type, const uint8_t *at,
                            size_t len, char *text, size_t cap)
{
    switch (type) {
    case NGHTTP2_HEADERS:
        return print_headers(inflater, at, len, text, cap);
    case NGHTTP2_DATA:
        return (size_t)snprintf(text, cap, " %zu", len);
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_WINDOW_UPDATE:
        return (size_t)snprintf(text, cap, " %u", get_u32(at));
    case NGHTTP2_GOAWAY:
        return (size_t)snprintf(text, cap, " %u %u%s%.*s", get_u32(at), get_u32(at + 4),
                                len > 8 ? " " : "", (int)(len - 8), (const char *)at + 8);
    default:
        return 0;
    }
}

void bytes_print(const struct bytes *bytes, char *text, size_t cap)
{
    static const char *const names[] = {"DATA", "HEADERS", "PRIORITY", "RST_STREAM",   "SETTINGS",
                                        "PUSH", "PING",    "GOAWAY",   "WINDOW_UPDATE"};
    const uint8_t *at = bytes->data;
    const uint8_t *end = bytes->data + bytes->len;
    nghttp2_hd_inflater *inflater = NULL;

    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    text[0] = '\0';
    while (end - at >= 9) {
        size_t len = get_u32(at) >> 8;
        const char *suffix = (at[3] <= 1 && (at[4] & 1) != 0) ? " end"
                             : ((at[3] == NGHTTP2_SETTINGS || at[3] == NGHTTP2_PING) && at[4] == 1)
                                 ? " ack"
                                 : "";
        size_t n = (size_t)snprintf(text, cap, "%s %u%s", names[at[3]], get_u32(at + 5), suffix);
        assert_true(n < cap);
        n += print_payload(inflater, at[3], at + 9, len, text + n, cap - n);
        assert_true(n + 1 < cap);
        text[n++] = '\n';
        text[n] = '\0';
        text += n;
        cap -= n;
        at += 9 + len;
    }
    nghttp2_hd_inflate_del(inflater);
    assert_ptr_equal(at, end);
}
