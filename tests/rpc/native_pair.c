/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two native sessions back to back; see native_pair.h.
 */
#include "tests/rpc/native_pair.h"
#include "rpc/native/session.h"
#include "tests/rpc/feed_in_turns.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

/* Events. */

static void keep_metadata(struct side *side, const struct bow_metadata *metadata)
{
    size_t n = 0;

    side->metadata[0] = '\0';
    for (size_t i = 0; i < metadata->n && n < sizeof(side->metadata); i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        assert_int_equal(entry->value.data[entry->value.len], 0);
        n += (size_t)snprintf(side->metadata + n, sizeof(side->metadata) - n, "%s=%s ", entry->key,
                              (const char *)entry->value.data);
    }
}

static void keep_status(struct side *side, const struct bow_status *status)
{
    side->code = status->code;
    snprintf(side->text, sizeof(side->text), "%s", status->message);
    snprintf(side->details, sizeof(side->details), "%.*s", (int)status->details.len,
             status->details.len > 0 ? (const char *)status->details.data : "");
    side->not_processed = status->not_processed;
    side->retry_after_ns = status->retry_after_ns;
    keep_metadata(side, &status->metadata);
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct side *side = owner;

    side->n_opens++;
    side->key = key;
    snprintf(side->path, sizeof(side->path), "%.*s", (int)head->path.len,
             (const char *)head->path.data);
    side->time_left_ns = head->time_left_ns;
    side->path_cache = head->path_cache;
    side->encoding = head->encoding;
    keep_metadata(side, &head->metadata);
    if (side->on_open != NULL) {
        side->on_open(side, key);
    }
    return (void *)(uintptr_t)(key + 1000);
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct side *side = owner;

    side->n_messages++;
    side->key = key;
    side->stream = stream;
    free(side->message);
    side->message = malloc(message->bytes.len + 1);
    assert_non_null(side->message);
    if (message->bytes.len > 0) {
        memcpy(side->message, message->bytes.data, message->bytes.len);
    }
    side->message_len = message->bytes.len;
    side->message_end = end;
    side->message_compressed = message->compressed;
    side->message_encoding = message->encoding;
    side->message_had_block = message->block != NULL;
    if (side->on_message != NULL) {
        side->on_message(side, key, message);
    }
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct side *side = owner;

    side->n_half_closes++;
    side->key = key;
    side->stream = stream;
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *metadata)
{
    struct side *side = owner;

    side->n_headers++;
    side->stream = stream;
    keep_metadata(side, metadata);
    if (side->on_headers != NULL) {
        side->on_headers(side, key);
    }
}

static void on_status(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct side *side = owner;

    side->n_statuses++;
    side->stream = stream;
    keep_status(side, status);
    if (side->on_end != NULL) {
        side->on_end(side, key);
    }
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    struct side *side = owner;

    side->n_resets++;
    side->stream = stream;
    keep_status(side, why);
    if (side->on_end != NULL) {
        side->on_end(side, key);
    }
}

static void on_ready(void *owner)
{
    struct side *side = owner;

    side->n_readies++;
    if (side->on_ready != NULL) {
        side->on_ready(side);
    }
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct side *side = owner;

    side->n_goaways++;
    side->goaway_code = reason->code;
    snprintf(side->goaway_text, sizeof(side->goaway_text), "%s", reason->message);
    if (side->on_goaway != NULL) {
        side->on_goaway(side);
    }
}

static void on_refused(void *owner, struct bow_slice path, const struct bow_status *status,
                       const char *limit)
{
    struct side *side = owner;

    side->n_refused++;
    (void)snprintf(side->refused, sizeof(side->refused), "%s %.*s %s", bow_code_name(status->code),
                   (int)path.len, (const char *)path.data, limit);
}

static const struct bow__session_events events = {
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

/* Life. */

struct bow__session_options pair_options(struct pair *pair, bool server)
{
    return (struct bow__session_options){
        .context = pair->context,
        .pool = &pair->pool,
        .events = &events,
        .owner = server ? &pair->server : &pair->client,
        .server = server,
        .max_message_bytes = (size_t)4 << 20,
        .max_calls = 100,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = 5 * SECOND,
        .now_ns = pair->now_ns,
    };
}

void pair_init_in(struct pair *pair, struct bow_context *context)
{
    *pair = (struct pair){.context = context, .now_ns = SECOND};
    pair->client.pair = pair;
    pair->server.pair = pair;
    bow__pool_init(&pair->pool, context, 4);
}

void pair_init(struct pair *pair)
{
    static const struct pair empty;

    *pair = empty;
    test_alloc_init(&pair->alloc);
    pair->context = test_context_new(&pair->alloc);
    pair->own_context = true;
    pair->now_ns = SECOND;
    pair->client.pair = pair;
    pair->server.pair = pair;
    bow__pool_init(&pair->pool, pair->context, 4);
}

int side_open(struct side *side, const struct bow__session_options *options)
{
    return bow__native_session_new(options, &side->session);
}

int pair_open(struct pair *pair)
{
    struct bow__session_options client = pair_options(pair, false);
    struct bow__session_options server = pair_options(pair, true);

    int rc = side_open(&pair->client, &client);
    return rc < 0 ? rc : side_open(&pair->server, &server);
}

static void side_fini(struct side *side)
{
    if (side->session != NULL) {
        side->session->ops->free(side->session);
    }
    free(side->in);
    free(side->message);
}

void pair_fini(struct pair *pair)
{
    side_fini(&pair->client);
    side_fini(&pair->server);
    bow__pool_fini(&pair->pool);
    if (pair->own_context) {
        test_context_end(pair->context, &pair->alloc);
    }
}

/* Bytes. */

static size_t random_below(struct pair *pair, size_t n)
{
    pair->random ^= pair->random << 13;
    pair->random ^= pair->random >> 7;
    pair->random ^= pair->random << 17;
    return (size_t)(pair->random % n);
}

static size_t step_of(struct pair *pair, size_t n)
{
    if (pair->step == 0 || n == 0) {
        return n;
    }
    size_t step = pair->random != 0 ? 1 + random_below(pair, pair->step) : pair->step;
    return step < n ? step : n;
}

/* Feed `more` with what was left before it, in a block of exactly that size. */
static ssize_t feed_step(struct side *side, const uint8_t *more, size_t n)
{
    uint8_t *all = malloc(side->n_in + n + 1);
    assert_non_null(all);
    if (side->n_in > 0) {
        memcpy(all, side->in, side->n_in);
    }
    memcpy(all + side->n_in, more, n);
    free(side->in);
    side->in = NULL;
    size_t total = side->n_in + n;
    uint8_t *exact = realloc(all, total > 0 ? total : 1);
    assert_non_null(exact);

    ssize_t used = feed_in_turns(side->session, exact, total, side->pair->now_ns);
    if (used < 0) {
        side->rc = (int)used;
        side->n_in = 0;
        free(exact);
        return used;
    }
    assert_true((size_t)used <= total);
    side->n_in = total - (size_t)used;
    if (side->n_in > 0) {
        side->in = malloc(side->n_in);
        assert_non_null(side->in);
        memcpy(side->in, exact + used, side->n_in);
    }
    free(exact);
    return used;
}

/* As a channel does: where the session wants it, with some of what follows behind it. Returns how
 * much of `bytes` there was room for, 0 for none. */
static size_t fill_room(struct side *side, const uint8_t *bytes, size_t n)
{
    size_t len = 0;
    size_t n_behind = 0;

    if (side->n_in > 0 || side->pair->no_rooms) {
        return 0;
    }
    uint8_t *room = side->session->ops->room(side->session, &len, &n_behind);
    if (room == NULL) {
        return 0;
    }
    size_t n_all = n < len + n_behind ? n : len + n_behind;
    size_t n_filled = n < len ? n : len;
    memcpy(room, bytes, n_all);
    side->n_rooms++;
    int rc = side->session->ops->received(side->session, n_filled, side->pair->now_ns);
    if (rc < 0) {
        side->rc = rc;
    }
    return n_filled;
}

ssize_t side_feed(struct side *side, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    ssize_t used = 0;

    while (n > 0 && side->rc == 0) {
        size_t step = step_of(side->pair, n);
        size_t n_filled = fill_room(side, at, step);
        at += n_filled;
        n -= n_filled;
        if (n_filled > 0) {
            continue;
        }
        used = feed_step(side, at, step);
        at += step;
        n -= step;
    }
    return used;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t hex_decode(const char *hex, uint8_t *to, size_t cap)
{
    size_t n = 0;

    while (*hex != '\0') {
        if (*hex == ' ' || *hex == '\n') {
            hex++;
            continue;
        }
        assert_true(n < cap && hex_digit(hex[0]) >= 0 && hex_digit(hex[1]) >= 0);
        to[n++] = (uint8_t)(hex_digit(hex[0]) * 16 + hex_digit(hex[1]));
        hex += 2;
    }
    return n;
}

ssize_t side_feed_hex(struct side *side, const char *hex)
{
    uint8_t bytes[1024];
    size_t n = hex_decode(hex, bytes, sizeof(bytes));

    return side_feed(side, bytes, n);
}

size_t side_take(struct side *side, uint8_t *to, size_t cap)
{
    struct iovec pieces[8];
    size_t total = 0;
    int n = side->session->ops->drain(side->session, pieces, 8);

    while (n > 0 && total < cap) {
        size_t moved = 0;
        for (int i = 0; i < n && total < cap; i++) {
            size_t len = pieces[i].iov_len < cap - total ? pieces[i].iov_len : cap - total;
            memcpy(to + total, pieces[i].iov_base, len);
            total += len;
            moved += len;
        }
        side->session->ops->sent(side->session, moved);
        n = side->session->ops->drain(side->session, pieces, 8);
    }
    return total;
}

void side_assert_output(struct side *side, const char *hex)
{
    uint8_t expected[1024];
    uint8_t output[1024];
    char text[2 * sizeof(output) + 1];
    size_t n_expected = hex_decode(hex, expected, sizeof(expected));
    size_t n = side_take(side, output, sizeof(output));

    for (size_t i = 0; i < n; i++) {
        snprintf(text + 2 * i, 3, "%02x", output[i]);
    }
    text[2 * n] = '\0';
    if (n != n_expected || memcmp(output, expected, n) != 0) {
        fail_msg("the output is %s, expected was %s", text, hex);
    }
}

void side_assert_broken(struct side *side, enum bow_code code, const char *text)
{
    static uint8_t output[2 << 20];
    size_t len = strlen(text);

    assert_true(side->rc < 0);
    assert_string_equal(side->session->failure.bytes, text);
    assert_int_equal(side->session->failure_code, code);
    size_t n = side_take(side, output, sizeof(output));
    assert_true(n >= len && memcmp(output + n - len, text, len) == 0);
    assert_int_equal(side->session->ops->feed(side->session, output, 1, side->pair->now_ns),
                     side->rc);
}

size_t pair_move(struct pair *pair, struct side *from, size_t max)
{
    struct side *to = from == &pair->client ? &pair->server : &pair->client;
    struct iovec pieces[16];
    int n = from->session->ops->drain(from->session, pieces, 16);
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        total += pieces[i].iov_len;
    }
    uint8_t *bytes = malloc(total + 1);
    assert_non_null(bytes);
    total = 0;
    for (int i = 0; i < n; i++) {
        memcpy(bytes + total, pieces[i].iov_base, pieces[i].iov_len);
        total += pieces[i].iov_len;
    }
    if (total > max) {
        total = max;
    }
    if (pair->random != 0 && total > 1) {
        total = 1 + random_below(pair, total);
    }
    if (total > 0) {
        from->session->ops->sent(from->session, total);
    }
    if (to->rc == 0) {
        side_feed(to, bytes, total);
    }
    free(bytes);
    return total;
}

void pair_run(struct pair *pair)
{
    size_t moved = 1;

    while (moved > 0) {
        moved = pair_move(pair, &pair->client, SIZE_MAX);
        moved += pair_move(pair, &pair->server, SIZE_MAX);
    }
}

/* Calls. */

int side_say(struct side *side, uint64_t key, uint32_t flags, const void *message, size_t len)
{
    struct bow__session *session = side->session;
    size_t cap = 0;

    uint8_t *room = session->ops->reserve(session, key, flags, &cap);
    if (room != NULL && len <= cap) {
        if (len > 0) {
            memcpy(room, message, len);
        }
        return session->ops->commit(session, key, flags, len);
    }
    struct bow__block *block = bow__block_new(side->pair->context, len);
    if (block == NULL) {
        return -ENOMEM;
    }
    if (len > 0) {
        memcpy(block->data, message, len);
    }
    int rc = session->ops->send(session, key, flags, block, 0, len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

uint64_t side_call(struct side *client, const char *path, uint64_t path_key, const void *message,
                   size_t len)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)path, strlen(path)},
        .time_left_ns = BOW_NEVER,
        .path_key = path_key,
    };
    uint64_t key = 0;

    assert_int_equal(client->session->ops->open(client->session, &head, client, &key), 0);
    assert_int_equal(side_say(client, key, BOW__SEND_END, message, len), 0);
    return key;
}

struct bow__block *pattern_block(struct bow_context *context, size_t len, uint8_t seed)
{
    struct bow__block *block = bow__block_new(context, len);

    assert_non_null(block);
    for (size_t i = 0; i < len; i++) {
        block->data[i] = (uint8_t)(i * 7 + seed);
    }
    return block;
}

void assert_pattern(const uint8_t *bytes, size_t len, uint8_t seed)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != (uint8_t)(i * 7 + seed)) {
            fail_msg("byte %zu of %zu is wrong", i, len);
        }
    }
}

uint64_t pair_call_pattern(struct pair *pair, size_t len, uint8_t seed)
{
    struct side *client = &pair->client;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .path_key = 7};
    struct bow__block *block = pattern_block(pair->context, len, seed);
    uint64_t key = 0;

    assert_int_equal(client->session->ops->open(client->session, &head, client, &key), 0);
    assert_int_equal(client->session->ops->send(client->session, key, BOW__SEND_END, block, 0, len),
                     0);
    return key;
}
