/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_FIELD_PATH_H
#define BOWLINE_RPC_CORE_CODEC_FIELD_PATH_H

/*
 * How reasons name a field: "demo.Order.items[3].name". Of a deep path the middle
 * is left out, "demo.Tree.left.left.left.left.(92 more).right.left.right.left".
 * Descriptors compiled for size have no names: "message.#2[3].#1".
 */

#include "base/text.h"
#include <protobuf-c/protobuf-c.h>

/** One step down: into a message that `field` holds, at `index` if it is repeated. */
struct bow__field_step {
    const ProtobufCFieldDescriptor *field;
    size_t index;
};

/** Reads step `i` of the path from what `user` stands for. */
typedef struct bow__field_step (*bow__field_step_fn)(const void *user, size_t i);

/** Append the path of `n_steps` from a message of type `root`. */
void bow__field_path_append(struct bow__text *text, const ProtobufCMessageDescriptor *root,
                            bow__field_step_fn step, const void *user, size_t n_steps);

/** Append the field at the end of a path, without index. */
void bow__field_path_append_field(struct bow__text *text, const ProtobufCFieldDescriptor *field);

#endif
