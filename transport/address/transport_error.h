/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_TRANSPORT_ERROR_H
#define BOWLINE_TRANSPORT_ADDRESS_TRANSPORT_ERROR_H

/*
 * The sentence in a struct bow_transport_error:
 *
 *     connecting to 127.0.0.1:1: ECONNREFUSED (Connection refused): is the server running there?
 */

#include "base/shared.h"
#include "base/text.h"

#include <bowline/channel.h>

/** Fill `ret_error` (may be NULL) for `error` at `stage` with `address`; `detail` (may be NULL)
 * replaces the advice that fits the errno. Returns `error`. */
BOW__SHARED int bow__transport_error(struct bow_transport_error *ret_error, const char *stage,
                                     const char *address, int error, const char *detail);

#endif
