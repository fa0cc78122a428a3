/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The host of web_host.h. */

#include "tests/web/web_host.h"
#include "rpc/http1/session.h"
#include "web.bow.h"
#include <bowline/server.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Returns whether it can be sent, if its client still waits for it. */
static bool send_bytes(struct web_host *host, struct bow_slice bytes, uint32_t flags)
{
    struct bow__block *block = bow__block_new(host->context, bytes.len > 0 ? bytes.len : 1);

    if (block == NULL) {
        return false;
    }
    if (bytes.len > 0) {
        memcpy(block->data, bytes.data, bytes.len);
    }
    int rc = host->session->ops->send(host->session, host->key, flags, block, 0, bytes.len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc == 0 || rc == -ENOENT;
}

static void finish(struct web_host *host, enum bow_code code)
{
    static const struct bow_metadata_entry entry = {"x-end", {(const uint8_t *)"1", 1}};
    struct bow_status status = {.code = code, .message = "", .metadata = {&entry, 1}};
    uint64_t key = host->key;

    host->key = 0;
    (void)host->session->ops->finish(host->session, key, &status);
}

static void answer(struct web_host *host, struct bow_slice bytes)
{
    uint32_t flags = host->is_pouring ? 0 : BOW__SEND_END;

    if (!send_bytes(host, bytes, flags) || (host->is_pouring && !send_bytes(host, bytes, flags))) {
        finish(host, BOW_RESOURCE_EXHAUSTED);
    } else if (host->is_pouring) {
        finish(host, BOW_OK);
    }
    host->key = 0;
}

static bool ends_with(struct bow_slice path, const char *name)
{
    size_t len = strlen(name);

    return path.len >= len && memcmp(path.data + path.len - len, name, len) == 0;
}

static void note_metadata(struct web_host *host, const struct bow_metadata *metadata)
{
    size_t n = 0;

    host->metadata[0] = '\0';
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        n += (size_t)snprintf(host->metadata + n, sizeof(host->metadata) - n, " %s=", entry->key);
        for (size_t k = 0; k < entry->value.len && n < sizeof(host->metadata); k++) {
            uint8_t byte = entry->value.data[k];
            n += (size_t)snprintf(host->metadata + n, sizeof(host->metadata) - n,
                                  isalnum(byte) ? "%c" : ".%u", byte);
        }
        n = n < sizeof(host->metadata) ? n : sizeof(host->metadata) - 1;
    }
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct web_host *host = owner;

    require(key > host->last_key && host->key == 0);
    host->key = host->last_key = key;
    host->n_opened++;
    note_metadata(host, &head->metadata);
    host->is_held = false;
    host->is_pouring = ends_with(head->path, "Pour");
    host->is_gathering = ends_with(head->path, "Gather");
    if (bow__registry_find(&host->registry, head->path) == NULL) {
        finish(host, BOW_UNIMPLEMENTED);
        return NULL;
    }
    return host;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct web_host *host = owner;

    require(stream == host && key == host->key);
    for (size_t i = 0; i < message->bytes.len; i++) {
        host->is_held = host->is_held || message->bytes.data[i] == 'h';
    }
    host->session->ops->consumed(host->session, key, bow__consumed_bytes(message->bytes.len));
    if (end && !host->is_held) {
        answer(host, message->bytes);
    }
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct web_host *host = owner;

    require(stream == host && key == host->key);
    if (!host->is_held) {
        answer(host, (struct bow_slice){(const uint8_t *)"\x0a\x01!", 3});
    }
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    struct web_host *host = owner;

    require(stream == host && key == host->key && why->message != NULL);
    host->key = 0;
    host->n_reset++;
}

static void on_ready(void *owner)
{
    (void)owner;
}

void web_host_begin(struct web_host *host, struct bow_context *context)
{
    static const struct bow__session_events events = {
        .on_open = on_open,
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_reset = on_reset,
        .on_ready = on_ready,
    };
    static const struct web__shop__handlers handlers;
    const struct bow_service *service = &web__shop__service;
    struct bow__text reason;

    memset(host, 0, sizeof(*host));
    host->context = context;
    host->now_ns = 100 * SECOND_NS;
    bow__pool_init(&host->pool, context, 4);
    bow__registry_init(&host->registry, context);
    require(bow__registry_add(&host->registry, service, &handlers, sizeof(handlers), service->hash,
                              NULL, &reason) == 0 &&
            bow__registry_seal(&host->registry) == 0);
    bow__coders_init(&host->compression.coders, context);
    host->compression.max_message_bytes = (size_t)64 << 10;
    require(bow__web_page_new(
                context,
                (struct bow_slice){(const uint8_t *)WEB_HOST_PAGE, sizeof(WEB_HOST_PAGE) - 1},
                "default-src 'none'", &host->page) == 0);
    host->web = (struct bow__web){
        .registry = &host->registry, .compression = &host->compression, .page = host->page};
    struct bow__session_options options = {
        .context = context,
        .pool = &host->pool,
        .events = &events,
        .owner = host,
        .server = true,
        .max_message_bytes = (size_t)64 << 10,
        .max_calls = 100,
        .protocols = BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB,
        .web = &host->web,
        .heartbeat_ns = 60 * SECOND_NS,
        .heartbeat_timeout_ns = 20 * SECOND_NS,
        .encodings = bow__encodings_built(),
        .now_ns = host->now_ns,
    };
    require(bow__http1_session_new(&options, &host->session) == 0);
}

void web_host_end(struct web_host *host)
{
    const struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "lost"};

    host->session->ops->fail(host->session, &lost);
    require(host->key == 0);
    host->session->ops->free(host->session);
    bow__web_page_free(host->page);
    bow__coders_trim(&host->compression.coders);
    bow__registry_fini(&host->registry);
    bow__pool_fini(&host->pool);
}

static void keep(struct web_host *host, const void *bytes, size_t n)
{
    size_t room = WEB_HOST_OUT_BYTES - 1 - host->n_out;

    n = n < room ? n : room;
    memcpy(host->out + host->n_out, bytes, n);
    host->n_out += n;
    host->out[host->n_out] = '\0';
}

void web_host_drain(struct web_host *host)
{
    struct iovec pieces[8];
    int n = 0;

    while ((n = host->session->ops->drain(host->session, pieces, 8)) > 0) {
        size_t n_bytes = 0;
        for (int i = 0; i < n; i++) {
            keep(host, pieces[i].iov_base, pieces[i].iov_len);
            n_bytes += pieces[i].iov_len;
        }
        host->session->ops->sent(host->session, n_bytes);
    }
}

/* In a turn of its own. */
static ssize_t feed_copy(struct web_host *host, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    require(copy != NULL);
    memcpy(copy, bytes, n);
    ssize_t used = host->session->ops->feed(host->session, copy, n, host->now_ns);
    free(copy);
    (void)bow__work_next_turn(&host->session->work);
    require(used <= (ssize_t)n);
    return used;
}

ssize_t web_host_feed(struct web_host *host, const void *bytes, size_t n, size_t step)
{
    const uint8_t *begin = bytes;
    size_t used = 0;
    size_t given = 0;

    while (given < n) {
        given = n - given < step ? n : given + step;
        ssize_t taken = 1;
        /* As its host does: again, once there is room for what it says. */
        while (taken > 0 && used < given) {
            taken = feed_copy(host, begin + used, given - used);
            web_host_drain(host);
            if (taken < 0) {
                return taken;
            }
            used += (size_t)taken;
        }
    }
    return (ssize_t)used;
}

void web_host_answer(struct web_host *host)
{
    if (host->key != 0) {
        answer(host, (struct bow_slice){(const uint8_t *)"\x0a\x01!", 3});
        web_host_drain(host);
    }
}
