/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading "dns:" names.
 */

#include "rpc/client/resolve/dns_name.h"
#include "rpc/client/resolve/scheme.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_PORT "443" /* gRPC's */

static bool copy(char *to, size_t n_to, struct bow_slice from)
{
    if (from.len >= n_to) {
        return false;
    }
    memcpy(to, from.data, from.len);
    to[from.len] = '\0';
    return true;
}

static struct bow_slice servers_of(const char *name)
{
    struct bow_slice none = {NULL, 0};

    if (strncmp(name, "//", 2) != 0) {
        return none;
    }
    return (struct bow_slice){(const uint8_t *)name + 2, strcspn(name + 2, "/")};
}

static int refuse(struct bow__text *why, const char *reason)
{
    bow__text_printf(why, "%s", reason);
    return -EINVAL;
}

int bow__dns_name_parse(const char *name, struct bow__dns_name *ret_name, struct bow__text *why)
{
    struct bow_slice servers = servers_of(name);
    struct bow_slice authority = bow__scheme_authority(name);
    struct bow_slice host = bow__scheme_host(authority);
    const char *question = strchr(name, '?');
    struct bow__dns_name parsed = {.port = DEFAULT_PORT};

    if (question != NULL && strcmp(question, "?srv") != 0) {
        return refuse(why,
                      "behind \"?\" stands \"srv\", to have SRV records looked up, or nothing");
    }
    parsed.asks_srv = question != NULL;
    if (host.len == 0 || !copy(parsed.host, sizeof(parsed.host), host)) {
        return refuse(why, "write dns:///HOST:PORT, with a host of at most 255 bytes");
    }
    if (servers.len > 0 && !copy(parsed.servers, sizeof(parsed.servers), servers)) {
        return refuse(why, "the name server between \"//\" and \"/\" is an address of IP");
    }
    struct bow_slice port = {host.data + host.len, authority.len - host.len};
    if (port.len > 0 && port.data[0] == ':') {
        port = (struct bow_slice){port.data + 1, port.len - 1};
        if (!copy(parsed.port, sizeof(parsed.port), port)) {
            return refuse(why, "the port must be a number from 0 to 65535");
        }
    }
    *ret_name = parsed;
    return 0;
}

bool bow__dns_name_resolves(const char *name)
{
    struct bow__address address;
    struct bow__text why;

    bow__text_clear(&why);
    return bow__address_parse(name, &address, &why) < 0 || address.kind != BOW__ADDRESS_NUMERIC;
}
