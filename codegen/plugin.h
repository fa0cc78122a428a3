/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_PLUGIN_H
#define BOWLINE_CODEGEN_PLUGIN_H

/*
 * One run of the plugin, from the bytes of a request to those of a response:
 *
 *     request ──► model ──► names ──► checks ──► emitters ──► x.pb-c.[ch], x.bow.[ch]
 */

#include "codegen/memory.h"

#include <bowline/slice.h>

#include "plugin.pb-c.h"

/**
 * Run. Returns the response, which holds files or else an error; NULL when `request` is not
 * a CodeGeneratorRequest at all.
 */
Bowline__Codegen__Response *plugin_run(struct memory *memory, struct bow_slice request);

#endif
