/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Targets taken apart: "grpc:", "list:" and gRPC's forms of several addresses. A single address
 * (unix:, dns:///, HOST:PORT) is parsed in transport/address/address.c.
 */

#include "rpc/client/target.h"
#include "base/alloc.h"
#include "rpc/connection/http2_built.h"
#include "transport/address/address.h"
#include "transport/address/transport_error.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define GRPC_PREFIX "grpc:"
#define LIST_PREFIX "list:"

/** More than any address that can be parsed has. */
#define MAX_ADDRESS_BYTES (BOW__HOST_BYTES + 32)

static bool skip_prefix(const char **text, const char *prefix)
{
    bool has = strncmp(*text, prefix, strlen(prefix)) == 0;

    *text += has ? strlen(prefix) : 0;
    return has;
}

/* A walk over the addresses */

struct walk {
    const char *rest; /* NULL: no further address */
    bool list;
    struct bow_slice scheme; /* of all addresses of a list as gRPC writes it; empty: none */
};

/* "ipv4:192.0.2.1:443,192.0.2.2:443": gRPC's way to write a list. */
static void skip_list_scheme(struct walk *walk)
{
    size_t len = 0;
    const char *scheme = bow__address_scheme(walk->rest, &len);

    if (scheme != NULL && strncmp(scheme, "ipv", 3) == 0 && strchr(walk->rest, ',') != NULL) {
        walk->scheme = (struct bow_slice){(const uint8_t *)walk->rest, len};
        walk->rest += len;
        walk->list = true;
    }
}

static struct walk walk_of(const char *target, bool *ret_http2)
{
    struct walk walk = {.rest = target};

    *ret_http2 = skip_prefix(&walk.rest, GRPC_PREFIX);
    walk.list = skip_prefix(&walk.rest, LIST_PREFIX);
    if (!walk.list) {
        skip_list_scheme(&walk);
    }
    return walk;
}

static bool next(struct walk *walk, struct bow_slice *ret_address)
{
    if (walk->rest == NULL) {
        return false;
    }
    const char *comma = walk->list ? strchr(walk->rest, ',') : NULL;
    size_t len = comma != NULL ? (size_t)(comma - walk->rest) : strlen(walk->rest);
    *ret_address = (struct bow_slice){(const uint8_t *)walk->rest, len};
    walk->rest = comma != NULL ? comma + 1 : NULL;
    return true;
}

static uint32_t count(struct walk walk)
{
    struct bow_slice address;
    uint32_t n = 0;

    while (next(&walk, &address)) {
        n++;
    }
    return n;
}

/* Checks */

int bow__target_refuse(const struct bow_client_options *options, int rc, const char *reason)
{
    const char *target = options->target != NULL ? options->target : "NULL";

    return bow__transport_error(options->error, "making a client for", target, rc, reason);
}

/* What belongs to a target as a whole, where one address is expected; NULL: nothing. */
static const char *misplaced(const char *address)
{
    if (strncmp(address, "//", 2) == 0) {
        return "no \"//\" follows \"grpc:\" or \"list:\": write grpc:HOST:PORT";
    }
    if (skip_prefix(&address, GRPC_PREFIX)) {
        return "\"grpc:\" stands once, before all else: grpc:list:ADDRESS,ADDRESS";
    }
    if (skip_prefix(&address, LIST_PREFIX)) {
        return "\"list:\" stands once, after \"grpc:\": grpc:list:ADDRESS,ADDRESS";
    }
    return strpbrk(address, ", ") != NULL
               ? "several addresses stand behind \"list:\", with commas and no blanks between "
                 "them: list:ADDRESS,ADDRESS"
               : NULL;
}

static int check_address(const struct bow_client_options *options, const char *address,
                         struct bow__text *why)
{
    struct bow__address parsed;
    struct bow__text syntax;

    bow__text_clear(&syntax);
    int rc = bow__address_parse(address, &parsed, &syntax);
    if (rc < 0) {
        const char *hint = misplaced(address);
        bow__text_printf(why, "%s", hint != NULL ? hint : syntax.bytes);
        return rc;
    }
    if (bow_address_is_local(address) == 0 && !options->plaintext && options->security == NULL) {
        bow__text_printf(why, "it is beyond this host, and connections are not encrypted; set "
                              "options.security (see bow_tls_security()), or options.plaintext = "
                              "true to allow that");
        return -EPERM;
    }
    return 0;
}

/* An address of a list is named by its place, for the text may not say which is meant. */
static int check_slice(const struct bow_client_options *options, const struct walk *walk,
                       struct bow_slice address, uint32_t place)
{
    char text[MAX_ADDRESS_BYTES];
    size_t n_scheme = walk->scheme.len;
    struct bow__text why;

    bow__text_clear(&why);
    if (walk->list) {
        bow__text_printf(&why, "address %u of the list: ", (unsigned)place);
    }
    if (address.len >= sizeof(text) - n_scheme || (walk->list && address.len == 0)) {
        bow__text_printf(&why, "it is %s", address.len == 0 ? "empty" : "too long");
        return bow__target_refuse(options, -EINVAL, why.bytes);
    }
    if (n_scheme > 0) {
        memcpy(text, walk->scheme.data, n_scheme);
    }
    memcpy(text + n_scheme, address.data, address.len);
    text[n_scheme + address.len] = '\0';
    int rc = check_address(options, text, &why);
    return rc == 0 ? 0 : bow__target_refuse(options, rc, why.bytes);
}

static int refuse_long_list(const struct bow_client_options *options, uint32_t n)
{
    struct bow__text why;

    bow__text_clear(&why);
    bow__text_printf(&why,
                     "a list has at most %u addresses (BOW_LIMIT_LIST_ADDRESSES), and this "
                     "one has %u",
                     BOW_LIMIT_LIST_ADDRESSES, (unsigned)n);
    return bow__target_refuse(options, -EINVAL, why.bytes);
}

int bow__target_check(const struct bow_client_options *options)
{
    struct bow_slice address;
    bool http2 = false;
    int rc = 0;

    if (options->target == NULL) {
        return bow__target_refuse(
            options, -EINVAL, "set options.target to HOST:PORT, unix:PATH or list:ADDRESS,ADDRESS");
    }
    struct walk walk = walk_of(options->target, &http2);
    if (http2 && !bow__http2_is_built()) {
        return bow__target_refuse(options, -EINVAL, "this build of the library is without HTTP/2");
    }
    uint32_t n = count(walk);
    if (n > BOW_LIMIT_LIST_ADDRESSES) {
        return refuse_long_list(options, n);
    }
    for (uint32_t place = 1; rc == 0 && next(&walk, &address); place++) {
        rc = check_slice(options, &walk, address, place);
    }
    return rc;
}

/* Making one */

/* Of an address that can be parsed. */
static char *server_name_of(struct bow_context *context, const struct bow_client_options *options,
                            const char *address)
{
    const char *end = strrchr(address, ':');

    if (options->server_name != NULL) {
        return bow__dup(context, options->server_name, strlen(options->server_name));
    }
    if (bow__address_is_hostless(address) || end == NULL) {
        return bow__dup(context, "localhost", strlen("localhost"));
    }
    if (*address == '[') {
        /* A zone says which of this host's links is meant: it is no part of what a certificate or
         * an authority names (RFC 6874, RFC 9110 4.2). */
        return bow__dup(context, address + 1, strcspn(address + 1, "%]"));
    }
    return bow__dup(context, address, (size_t)(end - address));
}

/* RFC 9113, section 8.3.1: host and port. What names no host is on this one. */
static char *authority_of(struct bow_context *context, const struct bow_client_options *options,
                          const char *address)
{
    size_t n_host = strcspn(address, "%");
    const char *rest = address + n_host + strcspn(address + n_host, "]");

    if (options->authority != NULL) {
        return bow__dup(context, options->authority, strlen(options->authority));
    }
    if (bow__address_is_hostless(address)) {
        return bow__dup(context, "localhost", strlen("localhost"));
    }
    char *authority = bow__dup(context, address, n_host + strlen(rest));
    if (authority != NULL) {
        memcpy(authority + n_host, rest, strlen(rest));
    }
    return authority;
}

static void free_text(struct bow_context *context, char *text)
{
    if (text != NULL) {
        bow__free(context, text, strlen(text) + 1);
    }
}

static void free_address(struct bow_context *context, struct bow__target_address *address)
{
    free_text(context, address->text);
    free_text(context, address->server_name);
    free_text(context, address->authority);
}

static int add(struct bow__target *target, struct bow_context *context,
               const struct bow_client_options *options, struct bow_slice text)
{
    struct bow__target_address address = {.server_name = NULL};
    size_t n_scheme = 0;

    (void)bow__address_scheme((const char *)text.data, &n_scheme);
    address.text = bow__dup(context, (const char *)text.data + n_scheme, text.len - n_scheme);
    if (address.text != NULL) {
        address.server_name = server_name_of(context, options, address.text);
        address.authority = authority_of(context, options, address.text);
    }
    if (address.server_name == NULL || address.authority == NULL) {
        free_address(context, &address);
        return -ENOMEM;
    }
    target->addresses[target->n_addresses++] = address;
    return 0;
}

/* `n`: what the array was made for. */
static void clear(struct bow__target *target, struct bow_context *context, uint32_t n)
{
    for (uint32_t i = 0; i < target->n_addresses; i++) {
        free_address(context, &target->addresses[i]);
    }
    if (target->addresses != NULL) {
        bow__free(context, target->addresses, n * sizeof(*target->addresses));
    }
    free_text(context, target->text);
    *target = (struct bow__target){0};
}

int bow__target_init(struct bow__target *target, struct bow_context *context,
                     const struct bow_client_options *options)
{
    struct bow_slice address;
    int rc = 0;

    *target = (struct bow__target){0};
    struct walk walk = walk_of(options->target, &target->http2);
    uint32_t n = count(walk);
    target->addresses = bow__alloc_array(context, n, sizeof(*target->addresses));
    target->text = bow__dup(context, options->target, strlen(options->target));
    if (target->addresses == NULL || target->text == NULL) {
        clear(target, context, n);
        return -ENOMEM;
    }
    while (rc == 0 && next(&walk, &address)) {
        rc = add(target, context, options, address);
    }
    if (rc < 0) {
        clear(target, context, n);
    }
    return rc;
}

void bow__target_fini(struct bow__target *target, struct bow_context *context)
{
    clear(target, context, target->n_addresses);
}

void bow__target_describe(const struct bow__target *target, struct bow__text *text)
{
    bow__text_printf(text, "%s", target->addresses[0].text);
    if (target->n_addresses > 1) {
        bow__text_printf(text, " and %u other%s", (unsigned)target->n_addresses - 1,
                         target->n_addresses > 2 ? "s" : "");
    }
}
