/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lines of addresses.
 */

#include "rpc/client/resolve/address_lines.h"
#include "base/alloc.h"
#include "transport/address/address.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\r"

/* The next word of a line, which is ended by a NUL; NULL: none, or a comment. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, BLANKS);
    size_t n = strcspn(word, BLANKS);

    if (*word == '\0' || *word == '#') {
        return NULL;
    }
    *line = word + n + (word[n] != '\0' ? 1 : 0);
    word[n] = '\0';
    return word;
}

static int refuse(struct bow__text *why, const char *word, const char *reason)
{
    bow__text_printf(why, "\"");
    bow__text_escape(why, (struct bow_slice){(const uint8_t *)word, strlen(word)}, 80);
    bow__text_printf(why, "\": %s", reason);
    return -EINVAL;
}

static int parse_weight(const char *digits, uint32_t *ret_weight)
{
    uint32_t weight = 0;

    for (const char *at = digits; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || weight > 100000) {
            return -EINVAL;
        }
        weight = weight * 10 + (uint32_t)(*at - '0');
    }
    if (weight == 0 || weight > 1000000) {
        return -EINVAL;
    }
    *ret_weight = weight;
    return 0;
}

static int parse_attribute(const char *word, struct bow_resolver_address *address,
                           struct bow__text *why)
{
    if (strncmp(word, "weight=", 7) == 0) {
        return parse_weight(word + 7, &address->weight) == 0
                   ? 0
                   : refuse(why, word, "a weight is a number from 1 to 1000000");
    }
    if (strncmp(word, "locality=", 9) == 0 && word[9] != '\0') {
        address->locality = word + 9;
        return 0;
    }
    return refuse(why, word, "behind an address stands weight=N, locality=NAME, or nothing");
}

/* Returns 1 for a line with an address, 0 for one without. */
static int parse_line(char *line, struct bow_resolver_address *ret_address, struct bow__text *why)
{
    struct bow__address parsed;
    const char *word = next_word(&line);

    if (word == NULL) {
        return 0;
    }
    *ret_address = (struct bow_resolver_address){.address = word, .weight = 1};
    int rc = bow__address_parse(word, &parsed, why);
    while (rc == 0 && (word = next_word(&line)) != NULL) {
        rc = parse_attribute(word, ret_address, why);
    }
    return rc == 0 ? 1 : rc;
}

static size_t count_lines(const char *text)
{
    size_t n = 1;

    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        n++;
    }
    return n;
}

static int parse_all(char *text, struct bow_resolver_address *addresses, size_t *ret_n,
                     struct bow__text *why)
{
    size_t n_before = why->len;
    size_t n = 0;
    int rc = 0;

    for (size_t number = 1; text != NULL && rc >= 0; number++) {
        char *end = strchr(text, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        bow__text_printf(why, "line %zu: ", number);
        rc = parse_line(text, &addresses[n], why);
        n += rc == 1 ? 1 : 0;
        if (rc >= 0) {
            why->len = n_before;
            why->bytes[n_before] = '\0';
        }
        text = end != NULL ? end + 1 : NULL;
    }
    *ret_n = n;
    return rc < 0 ? rc : 0;
}

int bow__address_lines_parse(struct bow_context *context, char *text,
                             struct bow_resolver_address **ret_addresses, size_t *ret_n,
                             size_t *ret_n_room, struct bow__text *why)
{
    size_t n_room = count_lines(text);
    struct bow_resolver_address *addresses = bow__alloc_array(context, n_room, sizeof(*addresses));

    if (addresses == NULL) {
        bow__text_printf(why, "there was no memory for %zu lines", n_room);
        return -ENOMEM;
    }
    int rc = parse_all(text, addresses, ret_n, why);
    if (rc < 0) {
        bow__free(context, addresses, n_room * sizeof(*addresses));
        return rc;
    }
    *ret_addresses = addresses;
    *ret_n_room = n_room;
    return 0;
}
