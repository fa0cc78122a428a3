/* SPDX-License-Identifier: 0BSD */
/* Owns how what a path is made of is packed, and unpacked. Knows nothing of calls. */

#include "path.h"
#include "attribute.pb-c.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PREFIX_LEN 32

/* Packing */

static void pack(struct path_packed *packed, const ProtobufCMessage *message)
{
    snprintf(packed->type_url, sizeof(packed->type_url), "type.googleapis.com/%s",
             message->descriptor->name);
    apipb__any__init(&packed->any);
    packed->any.type_url = packed->type_url;
    packed->any.value.len = protobuf_c_message_pack(message, packed->bytes);
    packed->any.value.data = packed->bytes;
}

/* Of the dotted form alone, so that it is known to be short. */
static bool is_address(const char *text)
{
    struct in_addr address;

    return inet_pton(AF_INET, text, &address) == 1;
}

static int pack_prefix(struct path_packed *packed, const char *text)
{
    Apipb__IPAddressPrefix prefix = APIPB__IPADDRESS_PREFIX__INIT;
    char address[INET_ADDRSTRLEN] = "";
    const char *slash = strchr(text, '/');
    char *end;

    if (slash == NULL || slash - text >= INET_ADDRSTRLEN) {
        return -EINVAL;
    }
    memcpy(address, text, (size_t)(slash - text));
    long len = strtol(slash + 1, &end, 10);
    if (!is_address(address) || end == slash + 1 || *end != '\0' || len < 0 ||
        len > MAX_PREFIX_LEN) {
        return -EINVAL;
    }
    prefix.prefix = address;
    prefix.prefix_len = (uint32_t)len;
    pack(packed, &prefix.base);
    return 0;
}

static int pack_next_hop(struct path_packed *packed, const char *text)
{
    Apipb__NextHopAttribute next_hop = APIPB__NEXT_HOP_ATTRIBUTE__INIT;
    char address[INET_ADDRSTRLEN] = "";

    if (!is_address(text)) {
        return -EINVAL;
    }
    strcpy(address, text);
    next_hop.next_hop = address;
    pack(packed, &next_hop.base);
    return 0;
}

Apipb__Family path_family(void)
{
    Apipb__Family family = APIPB__FAMILY__INIT;

    family.afi = APIPB__FAMILY__AFI__AFI_IP;
    family.safi = APIPB__FAMILY__SAFI__SAFI_UNICAST;
    return family;
}

int path_init(struct path *path, const char *prefix, const char *next_hop)
{
    Apipb__OriginAttribute origin = APIPB__ORIGIN_ATTRIBUTE__INIT; /* from within */

    if (pack_prefix(&path->prefix, prefix) < 0 || pack_next_hop(&path->next_hop, next_hop) < 0) {
        return -EINVAL;
    }
    pack(&path->origin, &origin.base);
    path->family = path_family();
    path->attributes[0] = &path->origin.any;
    path->attributes[1] = &path->next_hop.any;
    apipb__path__init(&path->path);
    path->path.family = &path->family;
    path->path.nlri = &path->prefix.any;
    path->path.n_pattrs = 2;
    path->path.pattrs = path->attributes;
    return 0;
}

/* Unpacking */

/* NULL when there is another message in it. */
static ProtobufCMessage *unpack(const Apipb__Any *any, const ProtobufCMessageDescriptor *type)
{
    const char *slash = strrchr(any->type_url, '/');

    if (slash == NULL || strcmp(slash + 1, type->name) != 0) {
        return NULL;
    }
    return protobuf_c_message_unpack(type, NULL, any->value.len, any->value.data);
}

static void print_next_hop(const Apipb__Any *any)
{
    ProtobufCMessage *message = unpack(any, &apipb__next_hop_attribute__descriptor);

    if (message != NULL) {
        printf(" via %s", ((Apipb__NextHopAttribute *)message)->next_hop);
        protobuf_c_message_free_unpacked(message, NULL);
    }
}

static void print_origin(const Apipb__Any *any)
{
    static const char *const names[] = {"IGP", "EGP", "incomplete"};
    ProtobufCMessage *message = unpack(any, &apipb__origin_attribute__descriptor);

    if (message != NULL) {
        uint32_t origin = ((Apipb__OriginAttribute *)message)->origin;
        printf(" origin %s", origin < 3 ? names[origin] : "?");
        protobuf_c_message_free_unpacked(message, NULL);
    }
}

void path_print(const char *prefix, const Apipb__Path *path)
{
    fputs(prefix, stdout);
    for (size_t i = 0; i < path->n_pattrs; i++) {
        print_next_hop(path->pattrs[i]);
        print_origin(path->pattrs[i]);
    }
    puts(path->best ? " best" : "");
}
