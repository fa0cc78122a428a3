/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Networks in CIDR notation (RFC 4632, RFC 4291).
 */

#include "transport/address/networks.h"
#include "base/alloc.h"
#include "transport/address/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define ITEM_BYTES 64 /* the longest IPv6 address with a prefix has 49 */

static int refuse(struct bow__text *why, const char *item, size_t len, const char *reason)
{
    bow__text_printf(why, "\"");
    bow__text_escape(why, (struct bow_slice){(const uint8_t *)item, len}, ITEM_BYTES);
    bow__text_printf(why, "\": %s", reason);
    return -EINVAL;
}

/* The prefix's length: digits only, at most `max`; or -EINVAL. */
static int parse_bits(const char *digits, int max)
{
    int bits = 0;

    if (*digits == '\0' || strlen(digits) > 3) {
        return -EINVAL;
    }
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9') {
            return -EINVAL;
        }
        bits = bits * 10 + (*digits - '0');
    }
    return bits <= max ? bits : -EINVAL;
}

static bool has_bits_beyond(const struct bow__network *network)
{
    for (int bit = network->n_bits; bit < network->n_bytes * 8; bit++) {
        if ((network->address[bit / 8] & (0x80 >> (bit % 8))) != 0) {
            return true;
        }
    }
    return false;
}

/* Returns NULL, or what is wrong. Cuts `item` at its slash. */
static const char *parse_network(char *item, struct bow__network *ret_network)
{
    char *slash = strchr(item, '/');

    if (slash != NULL) {
        *slash = '\0';
    }
    *ret_network = (struct bow__network){.n_bytes = 4};
    if (inet_pton(AF_INET, item, ret_network->address) != 1) {
        ret_network->n_bytes = 16;
        if (inet_pton(AF_INET6, item, ret_network->address) != 1) {
            return "this is no address of a network";
        }
    }
    int max = ret_network->n_bytes * 8;
    int bits = slash != NULL ? parse_bits(slash + 1, max) : max;
    if (bits < 0) {
        return "after the slash comes the number of bits of the prefix, at most 32 or 128";
    }
    ret_network->n_bits = (uint8_t)bits;
    return has_bits_beyond(ret_network) ? "bits are set beyond the prefix" : NULL;
}

static int parse_item(struct bow__networks *networks, const char *text, size_t len,
                      struct bow__text *why)
{
    char item[ITEM_BYTES];

    while (len > 0 && *text == ' ') {
        text++;
        len--;
    }
    while (len > 0 && text[len - 1] == ' ') {
        len--;
    }
    if (len == 0 || len >= sizeof(item)) {
        return refuse(why, text, len, "a network must stand between two commas");
    }
    memcpy(item, text, len);
    item[len] = '\0';
    if (strcmp(item, "unix") == 0) {
        networks->has_unix = true;
        return 0;
    }
    const char *reason = parse_network(item, &networks->items[networks->n_items]);
    if (reason != NULL) {
        return refuse(why, text, len, reason);
    }
    networks->n_items++;
    return 0;
}

static size_t count_items(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++) {
        n += *text == ',' ? 1 : 0;
    }
    return n;
}

int bow__networks_parse(struct bow_context *context, const char *text,
                        struct bow__networks *ret_networks, struct bow__text *why)
{
    struct bow__networks networks = {.n_allocated = 0};
    int rc = 0;

    if (text == NULL) {
        bow__text_printf(why, "no networks are given");
        return -EINVAL;
    }
    networks.n_allocated = count_items(text);
    networks.items = bow__alloc_array(context, networks.n_allocated, sizeof(*networks.items));
    if (networks.items == NULL) {
        return -ENOMEM;
    }
    for (const char *item = text; rc == 0 && item != NULL;) {
        const char *comma = strchr(item, ',');
        rc =
            parse_item(&networks, item, comma != NULL ? (size_t)(comma - item) : strlen(item), why);
        item = comma != NULL ? comma + 1 : NULL;
    }
    if (rc < 0) {
        bow__networks_free(context, &networks);
        return rc;
    }
    *ret_networks = networks;
    return 0;
}

void bow__networks_free(struct bow_context *context, struct bow__networks *networks)
{
    bow__free(context, networks->items, networks->n_allocated * sizeof(*networks->items));
    *networks = (struct bow__networks){.n_allocated = 0};
}

/* The bytes of an address as a network has them; n_bytes is 0 for one of another family. */
static struct bow__network network_of(const struct bow_sockaddr *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->storage;
    struct bow__network network = {.n_bytes = 0};

    if (in->sin_family == AF_INET) {
        network.n_bytes = 4;
        memcpy(network.address, &in->sin_addr, 4);
    } else if (in->sin_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        network.n_bytes = 4;
        memcpy(network.address, in6->sin6_addr.s6_addr + 12, 4);
    } else if (in->sin_family == AF_INET6) {
        network.n_bytes = 16;
        memcpy(network.address, &in6->sin6_addr, 16);
    }
    return network;
}

static bool contains(const struct bow__network *network, const struct bow__network *address)
{
    size_t n_whole = network->n_bits / 8;
    int n_rest = network->n_bits % 8;

    if (network->n_bytes != address->n_bytes ||
        memcmp(network->address, address->address, n_whole) != 0) {
        return false;
    }
    return n_rest == 0 ||
           ((network->address[n_whole] ^ address->address[n_whole]) >> (8 - n_rest)) == 0;
}

/* "[fe80::1%eth0]:80" without its zone: an address is in a network on whichever link. */
static void drop_zone(char *text)
{
    char *zone = strchr(text, '%');
    char *end = zone != NULL ? strchr(zone, ']') : NULL;

    if (end != NULL) {
        memmove(zone, end, strlen(end) + 1);
    }
}

bool bow__networks_contain(const struct bow__networks *networks, const char *peer)
{
    char text[BOW__ADDRESS_TEXT_BYTES];
    struct bow__address address;
    struct bow__text why;

    if (strncmp(peer, "unix", 4) == 0) {
        return networks->has_unix;
    }
    bow__text_clear(&why);
    snprintf(text, sizeof(text), "%s", peer);
    drop_zone(text);
    if (bow__address_parse(text, &address, &why) < 0 || address.kind != BOW__ADDRESS_NUMERIC) {
        return false;
    }
    const struct bow__network single = network_of(&address.sockaddr);
    for (size_t i = 0; i < networks->n_items; i++) {
        if (contains(&networks->items[i], &single)) {
            return true;
        }
    }
    return false;
}
