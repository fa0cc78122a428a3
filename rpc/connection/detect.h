/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_DETECT_H
#define BOWLINE_RPC_CONNECTION_DETECT_H

/*
 * Which protocol a client's first bytes are of.
 *
 *     B0 'O' 'W' ...        Bowline's own
 *     "PRI * HTTP/2.0" ...  HTTP/2
 *     "GET " ...            HTTP/1, which can be answered in where it is not spoken
 */

#include <bowline/slice.h>

enum bow__protocol {
    BOW__PROTOCOL_UNDECIDED = 0, /* more bytes are needed */
    BOW__PROTOCOL_NATIVE,
    BOW__PROTOCOL_HTTP2,
    BOW__PROTOCOL_HTTP1,
    BOW__PROTOCOL_UNKNOWN,
};

/** Judge by the first bytes; undecided only while they are a beginning of several. Thread: any. */
enum bow__protocol bow__detect(struct bow_slice bytes);

#endif
