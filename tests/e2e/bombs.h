/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_BOMBS_H
#define BOWLINE_TESTS_E2E_BOMBS_H

/*
 * Requests of few bytes that inflate to megabytes and decode to eight times as many (F34): packed
 * numbers, all zero, in zstd for the native protocol and gzip for HTTP/2.
 */

#include "hostile.h"

struct bomb {
    bool http2;
    uint8_t *bytes; /* compressed */
    size_t n;
};

/** Pack one of `n_numbers`; what cannot be decoded fails with its last byte. */
void bomb_make(struct bomb *bomb, bool http2, uint32_t n_numbers, bool is_decodable);
void bomb_free(struct bomb *bomb);

/** An Echo that brings it. */
void bomb_put(const struct bomb *bomb, struct hostile_bytes *to, uint32_t stream);

#endif
