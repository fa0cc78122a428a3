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
    const char *protoc_gen_c; /* NULL: not given */
    const char *for_child;    /* what protoc-gen-c itself knows: dllexport_decl=X; NULL: nothing */
    bool no_messages;         /* no typed functions of messages */
};

/** Decode. Returns NULL when `bytes` are not a request. */
Bowline__Codegen__Request *request_decode(struct memory *memory, struct bow_slice bytes);

/** Read the parameter text. Returns NULL, or what is wrong with it. */
const char *request_read_parameters(struct memory *memory, const char *text,
                                    struct parameters *ret_parameters);

#endif
