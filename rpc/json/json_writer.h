/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_WRITER_H
#define BOWLINE_RPC_JSON_JSON_WRITER_H

/*
 * A message on its way to JSON: where in it the writer is, the text so far, and why it failed.
 * Shared by the files that write; each of their functions returns false when there is no JSON for
 * what it was given, with `error` and `reason` set.
 */

#include "base/text.h"
#include "rpc/json/json_output.h"
#include "rpc/json/json_path.h"
#include "rpc/json/json_types.h"
#include "rpc/well_known/known_type.h"
#include <errno.h>

struct bow__json_writer {
    struct bow__json_output out;
    struct bow__json_path path;
    struct bow__json_types types;
    bool always_print;
    bool preserve_names;
    bool enums_as_numbers;
    int error;
    struct bow__text reason;
};

/** Fail with -EINVAL for what is at the path. Returns false. */
bool bow__json_writer_refuse(struct bow__json_writer *w, const char *what, ...) BOW_PRINTF(2, 3);
/** Fail with -ENOMEM. Returns false. */
bool bow__json_writer_no_memory(struct bow__json_writer *w);

/** Whether `message`, of the field at the path, can be looked into; else why not is said. */
bool bow__json_writer_is_whole(struct bow__json_writer *w, const ProtobufCMessage *message);
/** The same of `n` elements at `elements`. */
bool bow__json_writer_has_array(struct bow__json_writer *w, const void *elements, size_t n);

/** The value that a field has at `member`, a number, bool, enum, string or bytes. */
bool bow__json_write_scalar(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                            const void *member);

/** Calls `fn` for the entries of a map of at least one, each key once; the last entry counts. */
bool bow__json_write_entries(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n,
                             bool (*fn)(struct bow__json_writer *w, const ProtobufCMessage *entry));

#endif
