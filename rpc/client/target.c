/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Targets taken apart: "grpc:", "list:", gRPC's forms of several addresses, and names for
 * resolvers. A single address (unix:, HOST:PORT) is parsed in transport/address/address.c.
 */

#include "rpc/client/target.h"
#include "base/alloc.h"
#include "rpc/client/resolve/dns.h"
#include "rpc/client/resolve/file.h"
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

/* The library's own. */
static const struct bow__scheme *const own_schemes[] = {&bow__scheme_dns, &bow__scheme_file, NULL};

/* NULL: it is for none. Lists have addresses alone. */
static const struct bow_resolver *resolver_of(const struct bow_client_options *options,
                                              const char **ret_name,
                                              const struct bow__scheme **ret_own)
{
    const char *text = options->target;

    (void)skip_prefix(&text, GRPC_PREFIX);
    return bow__scheme_find(own_schemes, options->resolvers, options->n_resolvers, text, ret_name,
                            ret_own);
}

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

/* That it is encrypted is for a name to say before it is known what it has. */
static int check_host(const struct bow_client_options *options, const char *name,
                      struct bow__text *why)
{
    struct bow_slice authority = bow__scheme_authority(name);
    bool has_port = bow__scheme_host(authority).len < authority.len;
    char text[MAX_ADDRESS_BYTES];

    if (authority.len + sizeof(":443") > sizeof(text)) {
        bow__text_printf(why, "the host's name is too long");
        return -EINVAL;
    }
    memcpy(text, authority.data, authority.len);
    memcpy(text + authority.len, ":443", sizeof(":443"));
    text[has_port ? authority.len : authority.len + sizeof(":443") - 1] = '\0';
    return check_address(options, text, why);
}

static int check_name(const struct bow_client_options *options, const char *name,
                      const struct bow__scheme *own)
{
    struct bow__text why;
    int rc = 0;

    bow__text_clear(&why);
    if (*name == '\0') {
        bow__text_printf(&why, "a name must follow the scheme");
        rc = -EINVAL;
    }
    if (rc == 0 && own != NULL) {
        rc = own->check(name, &why);
    }
    if (rc == 0 && own != NULL && own->names_host) {
        rc = check_host(options, name, &why);
    }
    return rc == 0 ? 0 : bow__target_refuse(options, rc, why.bytes);
}

int bow__target_check(const struct bow_client_options *options)
{
    const struct bow__scheme *own = NULL;
    const char *name = NULL;
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
    if (resolver_of(options, &name, &own) != NULL) {
        return check_name(options, name, own);
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
static char *server_name_of(struct bow_context *context, const char *given, const char *address)
{
    const char *end = strrchr(address, ':');

    if (given != NULL) {
        return bow__dup(context, given, strlen(given));
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
static char *authority_of(struct bow_context *context, const char *address)
{
    size_t n_host = strcspn(address, "%");
    const char *rest = address + n_host + strcspn(address + n_host, "]");

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

void bow__target_address_fini(struct bow__target_address *address, struct bow_context *context)
{
    free_text(context, address->text);
    free_text(context, address->server_name);
    free_text(context, address->authority);
    free_text(context, address->locality);
    *address = (struct bow__target_address){.text = NULL};
}

/* `server_name`, `authority`: NULL, as the address says. */
static int make_address(struct bow__target_address *address, struct bow_context *context,
                        struct bow_slice text, const char *server_name, const char *authority)
{
    *address = (struct bow__target_address){.weight = 1};
    address->text = bow__dup(context, (const char *)text.data, text.len);
    if (address->text != NULL) {
        address->server_name = server_name_of(context, server_name, address->text);
        address->authority = authority != NULL ? bow__dup(context, authority, strlen(authority))
                                               : authority_of(context, address->text);
    }
    if (address->server_name == NULL || address->authority == NULL) {
        bow__target_address_fini(address, context);
        return -ENOMEM;
    }
    return 0;
}

static int add(struct bow__target *target, struct bow_context *context,
               const struct bow_client_options *options, struct bow_slice text)
{
    size_t n_scheme = 0;

    (void)bow__address_scheme((const char *)text.data, &n_scheme);
    struct bow_slice rest = {text.data + n_scheme, text.len - n_scheme};
    int rc = make_address(&target->addresses[target->n_addresses], context, rest,
                          options->server_name, options->authority);
    target->n_addresses += rc == 0 ? 1 : 0;
    return rc;
}

int bow__target_address_init(struct bow__target_address *address, struct bow_context *context,
                             const struct bow__target *target,
                             const struct bow_resolver_address *said)
{
    struct bow_slice text = {(const uint8_t *)said->address, strlen(said->address)};
    const char *server_name = said->server_name != NULL ? said->server_name : target->server_name;

    int rc = make_address(address, context, text, server_name, target->authority);
    if (rc < 0) {
        return rc;
    }
    address->weight = said->weight;
    if (said->locality != NULL) {
        address->locality = bow__dup(context, said->locality, strlen(said->locality));
        if (address->locality == NULL) {
            bow__target_address_fini(address, context);
            return -ENOMEM;
        }
    }
    return 0;
}

/* `n`: what the array was made for. */
static void clear(struct bow__target *target, struct bow_context *context, uint32_t n)
{
    for (uint32_t i = 0; i < target->n_addresses; i++) {
        bow__target_address_fini(&target->addresses[i], context);
    }
    if (target->addresses != NULL) {
        bow__free(context, target->addresses, n * sizeof(*target->addresses));
    }
    free_text(context, target->text);
    free_text(context, target->server_name);
    free_text(context, target->authority);
    free_text(context, target->dns_servers);
    *target = (struct bow__target){0};
}

/* RFC 9110, section 7.2: what a host and a port may have. A name of another kind is none that a
 * server knows itself by. */
static bool is_authority(struct bow_slice text)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-._~:[]";

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\0' || strchr(known, text.data[i]) == NULL) {
            return false;
        }
    }
    return text.len > 0;
}

/* Of addresses that do not say it themselves: those behind a host's name, or a program's. */
static int init_names(struct bow__target *target, struct bow_context *context,
                      const struct bow_client_options *options, const struct bow__scheme *own)
{
    struct bow_slice authority = bow__scheme_authority(target->name);
    struct bow_slice host = bow__scheme_host(authority);
    bool speaks = (own == NULL || own->names_host) && is_authority(authority);
    int rc = 0;

    if (options->authority != NULL) {
        authority =
            (struct bow_slice){(const uint8_t *)options->authority, strlen(options->authority)};
    }
    if (speaks || options->authority != NULL) {
        target->authority = bow__dup(context, (const char *)authority.data, authority.len);
        rc = target->authority == NULL ? -ENOMEM : 0;
    }
    if (options->server_name != NULL) {
        host =
            (struct bow_slice){(const uint8_t *)options->server_name, strlen(options->server_name)};
    }
    if (speaks || options->server_name != NULL) {
        target->server_name = bow__dup(context, (const char *)host.data, host.len);
        rc = target->server_name == NULL ? -ENOMEM : rc;
    }
    return rc;
}

/* A table of the library's own, with what the client's options say to it. */
static int init_own(struct bow__target *target, struct bow_context *context,
                    const struct bow_client_options *options, const struct bow__scheme *own)
{
    if (options->dns_servers != NULL) {
        target->dns_servers = bow__dup(context, options->dns_servers, strlen(options->dns_servers));
        if (target->dns_servers == NULL) {
            return -ENOMEM;
        }
    }
    target->own_options = (struct bow__scheme_options){
        .dns_servers = target->dns_servers,
        .dns_min_ttl_ns = options->dns_min_ttl_ns,
    };
    target->own = own->table;
    target->own.user = &target->own_options;
    target->resolver = &target->own;
    return 0;
}

static int init_resolved(struct bow__target *target, struct bow_context *context,
                         const struct bow_client_options *options)
{
    const struct bow__scheme *own = NULL;
    const char *name = NULL;

    target->resolver = resolver_of(options, &name, &own);
    target->http2 = strncmp(options->target, GRPC_PREFIX, strlen(GRPC_PREFIX)) == 0;
    target->text = bow__dup(context, options->target, strlen(options->target));
    if (target->text == NULL) {
        return -ENOMEM;
    }
    target->name = target->text + (name - options->target);
    int rc = own != NULL ? init_own(target, context, options, own) : 0;
    return rc == 0 ? init_names(target, context, options, own) : rc;
}

int bow__target_init(struct bow__target *target, struct bow_context *context,
                     const struct bow_client_options *options)
{
    const struct bow__scheme *own = NULL;
    const char *name = NULL;
    struct bow_slice address;
    int rc = 0;

    *target = (struct bow__target){0};
    if (resolver_of(options, &name, &own) != NULL) {
        rc = init_resolved(target, context, options);
        if (rc < 0) {
            clear(target, context, 0);
        }
        return rc;
    }
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
    bow__text_printf(text, "%s",
                     target->n_addresses > 0 ? target->addresses[0].text : target->text);
    if (target->n_addresses > 1) {
        bow__text_printf(text, " and %u other%s", (unsigned)target->n_addresses - 1,
                         target->n_addresses > 2 ? "s" : "");
    }
}
