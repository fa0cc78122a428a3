/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_PLUGIN_H
#define BOWLINE_CODEGEN_PLUGIN_H

/*
 * One run of the plugin, from the bytes of a request to those of a response:
 *
 *     request ──► model ──► checks ──► protoc-gen-c on what it can do ──► x.pb-c.[ch]
 *                               └────► our emitters ────────────────────► x.bow.[ch]
 */

#include "codegen/memory.h"

#include <bowline/slice.h>

#include "plugin.pb-c.h"

struct plugin_options {
    const char *protoc_gen_c; /* the program, unless the request's parameter names one */
    bool without_child;       /* make our files only (for tests that feed any bytes) */
};

/**
 * Run. Returns the response, which holds files or else an error; NULL when `request` is not
 * a CodeGeneratorRequest at all.
 */
Bowline__Codegen__Response *plugin_run(struct memory *memory, const struct plugin_options *options,
                                       struct bow_slice request);

#endif
