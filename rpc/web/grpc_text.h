/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_GRPC_TEXT_H
#define BOWLINE_RPC_WEB_GRPC_TEXT_H

/*
 * The texts that gRPC puts into header values: time-outs, percent-encoded
 * messages. Pure functions over slices; the forms are those of
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
 */

#include <bowline/slice.h>
#include <stddef.h>
#include <stdint.h>

/** Eight digits and a unit, no NUL. */
#define BOW__GRPC_TIMEOUT_BYTES 9

/**
 * Write `timeout_ns` (not BOW_NEVER) in the finest unit that holds it in eight digits, rounded
 * up; 0 becomes one nanosecond, for a time-out is positive on the wire. Returns its length.
 */
size_t bow__grpc_timeout_encode(uint64_t timeout_ns, char out[BOW__GRPC_TIMEOUT_BYTES]);

/** Read a time-out; what 64 bits cannot hold is BOW_NEVER. Returns 0, or -EBADMSG. */
int bow__grpc_timeout_decode(struct bow_slice text, uint64_t *ret_timeout_ns);

/** Bytes that bow__grpc_percent_encode() writes for `text`. */
size_t bow__grpc_percent_size(struct bow_slice text);

/** Write `text` with every byte but printable ASCII, and '%', as %XX. Returns the length. */
size_t bow__grpc_percent_encode(struct bow_slice text, char *out);

/**
 * Undo it into at most `cap` (> 0) bytes with the NUL. A % that two hex digits do not follow
 * stands for itself; what is then not UTF-8, and NULs, become '?'. A text that does not fit is
 * cut before the character that passes the end. Returns the length without the NUL.
 */
size_t bow__grpc_percent_decode(struct bow_slice text, char *out, size_t cap);

/** The largest length <= `max` at which `text` can be cut without splitting a UTF-8 character. */
size_t bow__grpc_text_cut(struct bow_slice text, size_t max);

#endif
