/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Schemes of targets.
 */

#include "rpc/client/resolve/scheme.h"

#include <errno.h>
#include <string.h>

/* What begins an address, or a target as a whole. */
static const char *const taken[] = {"grpc", "list", "unix",   "unix-abstract", "fd",
                                    "ipv4", "ipv6", "inproc", "vsock",         "passthrough"};

static bool is_taken(const char *scheme)
{
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], scheme) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_scheme(const char *scheme)
{
    size_t n = strspn(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.");

    return n > 0 && n < BOW_RESOLVER_SCHEME_BYTES && scheme[n] == '\0' && scheme[0] >= 'a';
}

/* One table. */
static const char *fault_of(const struct bow_resolver *resolver)
{
    if (resolver == NULL || resolver->size < sizeof(*resolver)) {
        return "it is NULL, or its size is not that of the struct";
    }
    if (resolver->scheme == NULL || !is_scheme(resolver->scheme)) {
        return "its scheme is none: a letter, then letters, digits, \"+\", \"-\" and \".\", all in "
               "lower case";
    }
    if (is_taken(resolver->scheme)) {
        return "addresses have that scheme";
    }
    return resolver->start == NULL || resolver->stop == NULL ? "it lacks start or stop" : NULL;
}

int bow__scheme_check_tables(const struct bow_resolver *const *resolvers, size_t n,
                             struct bow__text *why)
{
    for (size_t i = 0; i < n; i++) {
        const char *fault = fault_of(resolvers[i]);
        if (fault != NULL) {
            bow__text_printf(why, "options.resolvers[%zu]: %s", i, fault);
            return -EINVAL;
        }
    }
    return 0;
}

/* What `text` says behind "SCHEME:"; NULL: it has another. */
static const char *behind(const char *text, const char *scheme)
{
    size_t n = strlen(scheme);

    if (strncmp(text, scheme, n) != 0 || text[n] != ':') {
        return NULL;
    }
    return strncmp(text + n + 1, "///", 3) == 0 ? text + n + 4 : text + n + 1;
}

/* "dns:53" is a host of that name, and its port. */
static bool is_port(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

const struct bow_resolver *bow__scheme_find(const struct bow__scheme *const *own,
                                            const struct bow_resolver *const *resolvers, size_t n,
                                            const char *text, const char **ret_name,
                                            const struct bow__scheme **ret_own)
{
    const char *name = NULL;

    *ret_own = NULL;
    for (size_t i = 0; i < n; i++) {
        name = behind(text, resolvers[i]->scheme);
        if (name != NULL) {
            *ret_name = name;
            return resolvers[i];
        }
    }
    for (; *own != NULL; own++) {
        const char *scheme = (*own)->table.scheme;
        name = behind(text, scheme);
        if (name != NULL && !is_port(text + strlen(scheme) + 1) &&
            ((*own)->resolves == NULL || (*own)->resolves(name))) {
            *ret_name = name;
            *ret_own = *own;
            return &(*own)->table;
        }
    }
    return NULL;
}

struct bow_slice bow__scheme_authority(const char *name)
{
    const char *slash = strncmp(name, "//", 2) == 0 ? strchr(name + 2, '/') : NULL;
    const char *from = slash != NULL ? slash + 1 : name;

    return (struct bow_slice){(const uint8_t *)from, strcspn(from, "?")};
}

static size_t n_until(struct bow_slice text, const char *any)
{
    size_t n = 0;

    while (n < text.len && strchr(any, text.data[n]) == NULL) {
        n++;
    }
    return n;
}

struct bow_slice bow__scheme_host(struct bow_slice authority)
{
    if (authority.len > 0 && authority.data[0] == '[') {
        struct bow_slice inner = {authority.data + 1, authority.len - 1};
        return (struct bow_slice){inner.data, n_until(inner, "%]")};
    }
    return (struct bow_slice){authority.data, n_until(authority, ":")};
}
