/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Keys and values of servers. See the header. */

#include "etcd/endpoint.h"
#include "etcd/endpoint.pb-c.h"
#include <bowline/channel.h>
#include <bowline/json.h>
#include <bowline/limits.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define MAX_PORT 65535u

/* Addresses */

static bool is_port(const char *text)
{
    unsigned port = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        port = port * 10 + (unsigned)(*text - '0');
        if (port > MAX_PORT) {
            return false;
        }
    }
    return *text == '\0' && port > 0;
}

static bool is_plain(const char *text)
{
    for (; *text > ' ' && *text < 0x7f && *text != ','; text++) {
    }
    return *text == '\0';
}

/* A number of a descriptor means nothing to others. */
bool bow__etcd_is_address(const char *address)
{
    const char *colon = strrchr(address, ':');

    if (!is_plain(address) || colon == NULL || colon == address ||
        strncmp(address, "fd:", 3) == 0 || bow_address_is_local(address) < 0) {
        return false;
    }
    if (strncmp(address, "unix:", 5) == 0) {
        return address[5] != '\0';
    }
    if (address[0] == '[') {
        return colon[-1] == ']' && colon - address > 2 && is_port(colon + 1);
    }
    return strchr(address, ':') == colon && strchr(address, '/') == NULL && is_port(colon + 1);
}

/* Keys */

const char *bow__etcd_service_key(struct bow_arena *arena, const char *prefix, const char *service)
{
    size_t size = strlen(prefix) + strlen(service) + 2;
    char *key = bow_arena_alloc(arena, size);

    if (key != NULL) {
        (void)snprintf(key, size, "%s%s/", prefix, service);
    }
    return key;
}

const char *bow__etcd_server_key(struct bow_arena *arena, enum bow_etcd_layout layout,
                                 const char *service_key, const char *address, int64_t lease)
{
    size_t size = strlen(service_key) + strlen(address) + 24; /* or a number of 64 bits */
    char *key = bow_arena_alloc(arena, size);

    if (key != NULL && layout == BOW_ETCD_LAYOUT_GO_ZERO) {
        (void)snprintf(key, size, "%s%" PRId64, service_key, lease);
    } else if (key != NULL) {
        (void)snprintf(key, size, "%s%s", service_key, address);
    }
    return key;
}

/* Values, made */

static int fill_attributes(struct bow_arena *arena,
                           const struct bow_etcd_registration_options *options,
                           Bow__Etcd__Metadata *to)
{
    size_t n = options->n_attributes;
    Bow__Etcd__Metadata__AttributesEntry *entries = bow_arena_alloc(arena, n * sizeof(*entries));

    to->attributes = bow_arena_alloc(arena, n * sizeof(*to->attributes));
    if (entries == NULL || to->attributes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        entries[i] =
            (Bow__Etcd__Metadata__AttributesEntry)BOW__ETCD__METADATA__ATTRIBUTES_ENTRY__INIT;
        entries[i].key = options->attributes[i].key;
        entries[i].value = options->attributes[i].value;
        to->attributes[i] = &entries[i];
    }
    to->n_attributes = n;
    return 0;
}

static int write_json(struct bow_arena *arena, const struct bow_etcd_registration_options *options,
                      struct bow_slice *ret_value)
{
    Bow__Etcd__Endpoint endpoint = BOW__ETCD__ENDPOINT__INIT;
    Bow__Etcd__Metadata metadata = BOW__ETCD__METADATA__INIT;

    int rc = fill_attributes(arena, options, &metadata);
    if (rc < 0) {
        return rc;
    }
    metadata.weight = options->weight;
    metadata.locality = options->locality != NULL ? options->locality : "";
    metadata.version = options->version != NULL ? options->version : "";
    endpoint._op_case = BOW__ETCD__ENDPOINT___OP_OP;
    endpoint.addr = options->address;
    endpoint.metadata = &metadata;
    return bow_json_write(&endpoint.base, NULL, arena, ret_value, NULL, 0);
}

int bow__etcd_server_value(struct bow_arena *arena, enum bow_etcd_layout layout,
                           const struct bow_etcd_registration_options *options,
                           struct bow_slice *ret_value)
{
    int rc = 0;

    if (layout == BOW_ETCD_LAYOUT_GO_ZERO) {
        *ret_value =
            (struct bow_slice){(const uint8_t *)options->address, strlen(options->address)};
    } else {
        rc = write_json(arena, options, ret_value);
    }
    return rc == 0 && ret_value->len > BOW_LIMIT_ETCD_VALUE_BYTES ? -EMSGSIZE : rc;
}

/* Values, read */

static const char *copy(struct bow_arena *arena, struct bow_slice bytes)
{
    char *text = bow_arena_alloc(arena, bytes.len + 1);

    if (text != NULL) {
        memcpy(text, bytes.data, bytes.len);
        text[bytes.len] = '\0';
    }
    return text;
}

static const char *said(const char *text)
{
    return *text != '\0' ? text : NULL;
}

static int take_metadata(struct bow_arena *arena, const Bow__Etcd__Metadata *metadata,
                         struct bow_etcd_server *server)
{
    struct bow_etcd_attribute *attributes =
        bow_arena_alloc(arena, metadata->n_attributes * sizeof(*attributes));

    if (attributes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < metadata->n_attributes; i++) {
        attributes[i] = (struct bow_etcd_attribute){metadata->attributes[i]->key,
                                                    metadata->attributes[i]->value};
    }
    server->attributes = attributes;
    server->n_attributes = metadata->n_attributes;
    server->weight = metadata->weight > 0 ? metadata->weight : 1;
    server->locality = said(metadata->locality);
    server->version = said(metadata->version);
    return 0;
}

/* Of whoever wrote a Metadata that is not ours the address counts all the same. */
static int read_json(struct bow_arena *arena, struct bow_slice value,
                     struct bow_etcd_server *server)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    ProtobufCMessage *message = NULL;

    options.ignore_unknown = true;
    int rc =
        bow_json_read(&bow__etcd__endpoint__descriptor, value, &options, arena, &message, NULL, 0);
    if (rc == -EBADMSG) {
        rc = bow_json_read(&bow__etcd__address__descriptor, value, &options, arena, &message, NULL,
                           0);
        server->address = rc == 0 ? ((const Bow__Etcd__Address *)message)->addr : NULL;
        return rc;
    }
    if (rc < 0) {
        return rc;
    }
    const Bow__Etcd__Endpoint *endpoint = (const Bow__Etcd__Endpoint *)message;
    server->address = endpoint->addr;
    return endpoint->metadata != NULL ? take_metadata(arena, endpoint->metadata, server) : 0;
}

static int read_server(struct bow_arena *arena, enum bow_etcd_layout layout, struct bow_slice value,
                       struct bow_etcd_server *server)
{
    int rc = 0;

    server->weight = 1;
    if (layout == BOW_ETCD_LAYOUT_GO_ZERO) {
        server->address = copy(arena, value);
        rc = server->address != NULL ? 0 : -ENOMEM;
    } else {
        rc = read_json(arena, value, server);
    }
    return rc == 0 && !bow__etcd_is_address(server->address) ? -EBADMSG : rc;
}

int bow__etcd_endpoint_read(struct bow_context *context, enum bow_etcd_layout layout,
                            struct bow_slice key, struct bow_slice value,
                            struct bow__etcd_endpoint **ret_endpoint)
{
    if (key.len > BOW_LIMIT_ETCD_VALUE_BYTES || value.len > BOW_LIMIT_ETCD_VALUE_BYTES) {
        return -EMSGSIZE;
    }
    struct bow_arena *arena = bow_arena_new(context, ARENA_BYTES);
    struct bow__etcd_endpoint *endpoint = bow_arena_alloc(arena, sizeof(*endpoint));
    const char *name = copy(arena, key);
    int rc = -ENOMEM;

    if (endpoint != NULL && name != NULL) {
        *endpoint = (struct bow__etcd_endpoint){
            .arena = arena,
            .key = {(const uint8_t *)name, key.len},
            .server = {.key = name},
        };
        rc = read_server(arena, layout, value, &endpoint->server);
    }
    if (rc < 0) {
        bow_arena_free(arena);
        return rc;
    }
    *ret_endpoint = endpoint;
    return 0;
}

void bow__etcd_endpoint_free(struct bow__etcd_endpoint *endpoint)
{
    if (endpoint != NULL) {
        bow_arena_free(endpoint->arena);
    }
}
