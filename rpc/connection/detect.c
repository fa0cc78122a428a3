/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Telling protocols apart by their first bytes. When it is too late for them: conn.c.
 */

#include "rpc/connection/detect.h"

#include <stdbool.h>
#include <string.h>

struct opening {
    const char *bytes;
    enum bow__protocol protocol;
};

enum bow__protocol bow__detect(struct bow_slice bytes)
{
    static const struct opening openings[] = {
        {"\xB0OW", BOW__PROTOCOL_NATIVE},  {"PRI * HTTP/2.0\r\n", BOW__PROTOCOL_HTTP2},
        {"GET ", BOW__PROTOCOL_HTTP1},     {"HEAD ", BOW__PROTOCOL_HTTP1},
        {"POST ", BOW__PROTOCOL_HTTP1},    {"PUT ", BOW__PROTOCOL_HTTP1},
        {"DELETE ", BOW__PROTOCOL_HTTP1},  {"OPTIONS ", BOW__PROTOCOL_HTTP1},
        {"CONNECT ", BOW__PROTOCOL_HTTP1}, {"TRACE ", BOW__PROTOCOL_HTTP1},
        {"PATCH ", BOW__PROTOCOL_HTTP1},
    };
    bool undecided = false;

    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
        size_t len = strlen(openings[i].bytes);
        size_t n = bytes.len < len ? bytes.len : len;
        if (n > 0 && memcmp(bytes.data, openings[i].bytes, n) != 0) {
            continue;
        }
        if (n == len) {
            return openings[i].protocol;
        }
        undecided = true;
    }
    return undecided ? BOW__PROTOCOL_UNDECIDED : BOW__PROTOCOL_UNKNOWN;
}
