/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_REQUEST_H
#define BOWLINE_CODEGEN_REQUEST_H

/*
 * What protoc hands over: the files, and the parameter from its command line.
 */

#include "codegen/memory.h"

#include <bowline/slice.h>

#include "plugin.pb-c.h"

/** Of `--bowline_opt=NAME=VALUE,NAME`. */
struct parameters {
    const char *dllexport_decl; /* put before what other objects see; NULL: nothing */
    const char *header_prefix;  /* the folder put before each #include of ours; NULL: none */
    bool client_only;           /* no server's side of services */
    bool server_only;           /* no client's side */
    bool lite;                  /* no serialized file */
    bool no_json;               /* no JSON names */
    bool no_messages;           /* no typed functions of messages */
    bool imports;               /* also the files that are imported, over any number of steps */
    bool list;                  /* only the names of the files that would be written */
};

struct request {
    const Bowline__Codegen__Request *message;
    const struct bow_slice *files; /* what each of message->proto_file was decoded from */
};

/** Decode. Returns false when `bytes` are not a request; else it points into them. */
bool request_decode(struct memory *memory, struct bow_slice bytes, struct request *ret_request);

/** Read the parameter text. Returns NULL, or what is wrong with it. */
const char *request_read_parameters(struct memory *memory, const char *text,
                                    struct parameters *ret_parameters);

#endif
