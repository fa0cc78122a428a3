/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a call sends along: what its caller gives, and the trace context of the call that is
 * being served (https://www.w3.org/TR/trace-context/), behind it. All of it is in the memory of
 * the call, for it is sent later, and perhaps twice. Knows no connections.
 */

#include "rpc/client/call/client_metadata.h"
#include "rpc/core/call/call_metadata.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

/* Left to what a protocol itself says of a call. */
#define PROTOCOLS_BYTES ((size_t)4 << 10)

static int refuse(const struct bow_metadata *metadata, struct bow__text *reason)
{
    static const char bad[] = "its key or its value has a character that the rules in "
                              "<bowline/metadata.h> exclude";
    static const char reserved[] = "the key is one that the protocols keep for themselves; "
                                   "<bowline/metadata.h> names them";
    const struct bow_metadata_entry *entry = metadata->entries;

    while (bow__metadata_is_valid(entry->key, entry->value)) {
        entry++;
    }
    bow__text_printf(reason, "the metadata \"");
    struct bow_slice key = {(const uint8_t *)entry->key, strlen(entry->key)};
    bow__text_escape(reason, key, 128);
    bow__text_printf(reason, "\" cannot be sent: %s",
                     bow__metadata_is_reserved(key) ? reserved : bad);
    return -EINVAL;
}

static int check(const struct bow_metadata *metadata, struct bow__text *reason)
{
    int rc = bow__metadata_check(metadata);

    if (rc == -EINVAL) {
        return refuse(metadata, reason);
    }
    if (rc == -EMSGSIZE) {
        bow__text_printf(reason, "metadata of %zu bytes is above BOW_LIMIT_HEADER_BYTES_MAX (%zu)",
                         bow__metadata_bytes(metadata), BOW_LIMIT_HEADER_BYTES_MAX);
    }
    return rc;
}

static bool is_trace_key(const char *key)
{
    return strcmp(key, "traceparent") == 0 || strcmp(key, "tracestate") == 0;
}

static bool has_trace(const struct bow_metadata *metadata)
{
    return bow_metadata_find(metadata, "traceparent") != NULL ||
           bow_metadata_find(metadata, "tracestate") != NULL;
}

/* Whole or not at all: a call does not fail for the sake of a trace. */
static int inherit(struct bow__client_call *call, struct bow__metadata_list *list,
                   const struct bow_metadata *received)
{
    struct bow__metadata_list before = *list;
    int rc = 0;

    for (size_t i = 0; i < received->n && rc == 0; i++) {
        const struct bow_metadata_entry *entry = &received->entries[i];
        if (is_trace_key(entry->key)) {
            rc = bow__metadata_add(list, &call->memory->arena, entry->key, entry->value);
        }
    }
    if (rc < 0 || list->n_bytes > BOW_LIMIT_HEADER_BYTES - PROTOCOLS_BYTES) {
        list->n = before.n;
        list->n_bytes = before.n_bytes;
    }
    call->n_inherited = (uint16_t)(list->n - before.n);
    return rc == -ENOMEM ? rc : 0;
}

static int take_with_trace(struct bow__client_call *call, const struct bow_metadata *given,
                           const struct bow_metadata *received)
{
    struct bow__metadata_list list = {.n = 0};
    int rc = 0;

    for (size_t i = 0; i < given->n && rc == 0; i++) {
        rc = bow__metadata_add(&list, &call->memory->arena, given->entries[i].key,
                               given->entries[i].value);
    }
    call->n_given = (uint16_t)list.n;
    if (rc == 0) {
        rc = inherit(call, &list, received);
    }
    call->metadata = bow__metadata_of(&list);
    return rc;
}

int bow__client_call_take_metadata(struct bow__client_call *call,
                                   const struct bow_call_options *options, struct bow__text *reason)
{
    static const struct bow_metadata none = BOW_METADATA_INIT;
    const struct bow_metadata *given = options->metadata != NULL ? options->metadata : &none;
    const struct bow_metadata *received =
        options->parent != NULL ? bow__call_trace(options->parent) : &none;

    int rc = check(given, reason);
    if (rc < 0) {
        return rc;
    }
    if (bow_metadata_find(received, "traceparent") == NULL || has_trace(given)) {
        return bow__metadata_copy(&call->memory->arena, given, &call->metadata);
    }
    return take_with_trace(call, given, received);
}

static size_t inherited_bytes(const struct bow__client_call *call,
                              const struct bow__metadata_list *list)
{
    const struct bow_metadata inherited = {list->entries + call->n_given, call->n_inherited};

    return bow__metadata_bytes(&inherited);
}

static void drop_inherited(struct bow__client_call *call, struct bow__metadata_list *list)
{
    struct bow_metadata_entry *first = list->entries + call->n_given;

    list->n -= call->n_inherited;
    memmove(first, first + call->n_inherited, (list->n - call->n_given) * sizeof(*first));
    call->n_inherited = 0;
}

int bow__client_call_add_metadata(struct bow__client_call *call, struct bow__metadata_list *list,
                                  const char *key, struct bow_slice value)
{
    bool replaces = call->n_inherited > 0 && is_trace_key(key);
    size_t n_replaced = replaces ? inherited_bytes(call, list) : 0;

    list->n_bytes -= n_replaced;
    int rc = bow__metadata_add(list, &call->memory->arena, key, value);
    if (rc < 0) {
        list->n_bytes += n_replaced;
        return rc;
    }
    if (replaces) {
        drop_inherited(call, list);
    }
    call->metadata = bow__metadata_of(list);
    return 0;
}

static size_t named_bytes(const struct bow__metadata_list *list, const char *key)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->entries[i].key, key) == 0) {
            n_bytes += bow__metadata_bytes(&(struct bow_metadata){&list->entries[i], 1});
        }
    }
    return n_bytes;
}

/* Of the first `n`, which are the caller's, then the parent's, then those of interceptors. */
static void drop_named(struct bow__client_call *call, struct bow__metadata_list *list,
                       const char *key, size_t n)
{
    size_t n_given = call->n_given;
    size_t n_own = n_given + call->n_inherited;
    size_t n_kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (i >= n || strcmp(list->entries[i].key, key) != 0) {
            list->entries[n_kept++] = list->entries[i];
        } else if (i < n_given) {
            call->n_given--;
        } else if (i < n_own) {
            call->n_inherited--;
        }
    }
    list->n = n_kept;
}

int bow__client_call_set_metadata(struct bow__client_call *call, struct bow__metadata_list *list,
                                  const char *key, struct bow_slice value)
{
    size_t n_replaced = named_bytes(list, key);
    size_t n = list->n;
    int rc = 0;

    list->n_bytes -= n_replaced;
    if (value.data != NULL) {
        rc = bow__metadata_add(list, &call->memory->arena, key, value);
    }
    if (rc < 0) {
        list->n_bytes += n_replaced;
        return rc;
    }
    drop_named(call, list, key, n);
    call->metadata = bow__metadata_of(list);
    return 0;
}
