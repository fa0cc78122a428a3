/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_WEB_H
#define BOWLINE_RPC_WEB_WEB_H

/*
 * Calls of browsers and of curl over HTTP, version 1.1 or 2: the Connect protocol
 * (https://connectrpc.com/docs/protocol) and gRPC-Web
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). One request of HTTP is one
 * struct bow__web_call, a machine without I/O that a session of HTTP keeps beside its stream:
 *
 *     head, body ──► bow__web_begin, bow__web_read ──► struct bow__message ──► the session's events
 *     HTTP ◄── struct bow__web_output ◄── bow__web_respond, _send, _end ◄── its operations
 *
 * Messages are protobuf's on the side of the session, so that interceptors, payloads and handlers
 * see what they see of every other protocol. What travels as JSON is turned here, by the
 * descriptors of the method, which is why a call looks it up.
 *
 * What each answer is made of, after a head with HTTP's status:
 *
 *     Connect, unary    the message, bare; or the error as JSON, with a status of HTTP's own
 *     Connect, streams  prefix, message, …, prefix (flag 2), error and trailing metadata as JSON
 *     gRPC-Web          prefix, message, …, prefix (flag 0x80), trailers as text; and as -text all
 *                       of it in base64, piece by piece
 *
 * A prefix is gRPC's: a byte of flags and a length of four.
 */

#include "base/arena.h"
#include "rpc/core/session.h"
#include "rpc/web/fields.h"
#include "rpc/web/reader.h"
#include <bowline/service.h>

struct bow__compression;
struct bow__registry;
struct bow__web_origins;
struct bow__web_page;

/** What all calls of a loop share; kept as long as there are any. */
struct bow__web {
    const struct bow__registry *registry;
    struct bow__compression *compression;
    const struct bow__web_origins *origins; /* whose pages may call; NULL: none but the server's */
    const struct bow__web_page *page;       /* at "/"; NULL: none */
    const struct bow_file *const *files;    /* whose messages an Any may hold */
    size_t n_files;
};

enum bow__web_kind {
    BOW__WEB_NONE = 0, /* no call: it is answered by HTTP alone */
    BOW__WEB_CONNECT_UNARY,
    BOW__WEB_CONNECT_STREAM,
    BOW__WEB_GRPC,
    BOW__WEB_GRPC_TEXT,
};

/** Bytes of a call's own, for fields and texts: few calls need more. */
#define BOW__WEB_SLAB_BYTES ((size_t)1 << 10)

struct bow__web_call {
    const struct bow__web *web;
    struct bow__pool *pool; /* whence it is */
    struct bow_context *context;
    enum bow__web_kind kind;
    bool is_json;
    bool is_get;
    bool is_page;                    /* of kind NONE: the answer has it */
    bool is_head;                    /* and none of its bytes are asked for */
    bool is_begun;                   /* the answer's head has been given */
    bool is_ended;                   /* and its end */
    const struct bow_method *method; /* NULL: nobody has it */

    /* The request. Texts are borrowed from its head until the call was opened. */
    struct bow_slice path;
    uint64_t time_left_ns;
    enum bow__encoding encoding;
    uint32_t accepts; /* a set of encodings */

    /* Why there is no call, to be said by bow__web_refuse(). */
    const char *http_status; /* of kind NONE, "405"; else NULL */
    enum bow_code code;      /* of another; OK: there is one */
    struct bow__text reason;

    struct bow__web_reader reader;

    /* The answer. */
    struct bow_slice origin; /* to be named in it; empty: none */
    enum bow__encoding out_encoding;
    struct bow__web_fields fields; /* of its head, until that is given */
    struct bow__block *held;       /* a unary reply that waits for its status */
    size_t held_offset;
    size_t n_held;
    bool is_held_compressed;

    struct bow__arena arena;
    _Alignas(BOW__ARENA_ALIGNMENT) uint8_t slab[BOW__WEB_SLAB_BYTES];
};

/** Free it with all that it holds; NULL is allowed. Returns NULL. */
struct bow__web_call *bow__web_call_free(struct bow__web_call *call);

/** What it takes in memory, without messages. */
size_t bow__web_call_bytes(const struct bow__web_call *call);

/** What interceptors and logs call its protocol; "http" for none. Lives for ever. */
const char *bow__web_protocol(const struct bow__web_call *call);

#endif
