/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The PROXY header over any bytes: what is found lies within the bytes and the limit, a
 * byte less is not enough, more bytes never change the answer, and addresses that were read are
 * written in printable bytes.
 */

#include "transport/address/address.h"
#include "transport/handlers/proxy_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 2048

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void check_address(const struct bow_sockaddr *address)
{
    char text[BOW__ADDRESS_TEXT_BYTES];

    bow__address_format(address, text);
    check(strlen(text) < sizeof(text));
    for (const char *c = text; *c != '\0'; c++) {
        check(*c > ' ' - 1 && *c <= '~');
    }
}

static void check_found(const struct bow__proxy_header *header, struct bow_slice bytes)
{
    struct bow__proxy_header again;
    const char *reason = NULL;

    check(header->len > 0 && header->len <= bytes.len && header->len <= MAX_BYTES);
    check(bow__proxy_header_parse((struct bow_slice){bytes.data, header->len}, MAX_BYTES, &again,
                                  &reason) == 0);
    check(again.len == header->len && again.has_addresses == header->has_addresses);
    check(bow__proxy_header_parse((struct bow_slice){bytes.data, header->len - 1}, MAX_BYTES,
                                  &again, &reason) == -EAGAIN);
    if (header->has_addresses) {
        check_address(&header->source);
        check_address(&header->destination);
    }
}

/* What is refused stays refused with more bytes, and is found by `size` bytes at the latest. */
static void check_refused(struct bow_slice bytes, int error)
{
    struct bow__proxy_header header;
    const char *reason = NULL;
    bool is_refused = false;

    for (size_t n = 0; n <= bytes.len && n <= MAX_BYTES; n++) {
        int rc =
            bow__proxy_header_parse((struct bow_slice){bytes.data, n}, MAX_BYTES, &header, &reason);
        check(rc == -EAGAIN || rc == error);
        check(!is_refused || rc == error);
        is_refused = rc == error;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow__proxy_header header;
    const char *reason = NULL;

    int rc = bow__proxy_header_parse((struct bow_slice){data, size}, MAX_BYTES, &header, &reason);
    if (rc == 0) {
        check_found(&header, (struct bow_slice){data, size});
        return 0;
    }
    if (rc == -EAGAIN) {
        check(size < MAX_BYTES);
        return 0;
    }
    check(rc == -EMSGSIZE || rc == -EBADMSG);
    check(reason != NULL);
    check_refused((struct bow_slice){data, size}, rc);
    return 0;
}
