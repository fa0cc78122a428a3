/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_PATH_H
#define BOWLINE_RPC_JSON_JSON_PATH_H

/*
 * Where in a message reading or writing is: the fields from the outermost message on, for reasons,
 * and so how deep. Knows nothing of texts.
 *
 * Invariant: `steps[depth]` is the field of the innermost message that is at work, or its `field`
 * is NULL between two.
 */

#include "rpc/core/codec/field_path.h"
#include <bowline/limits.h>

/** The index of a repeated field that is not at one of its elements. */
#define BOW__JSON_NO_INDEX SIZE_MAX

struct bow__json_path {
    const ProtobufCMessageDescriptor *root;
    size_t depth; /* levels below `root` */
    size_t max_depth;
    struct bow__field_step steps[BOW_LIMIT_MESSAGE_DEPTH + 1];
};

static inline void bow__json_path_begin(struct bow__json_path *path,
                                        const ProtobufCMessageDescriptor *root, size_t max_depth)
{
    path->root = root;
    path->depth = 0;
    path->max_depth = max_depth;
    path->steps[0].field = NULL;
}

/** The innermost message's field is `field` now (NULL: none). */
static inline void bow__json_path_at(struct bow__json_path *path,
                                     const ProtobufCFieldDescriptor *field)
{
    path->steps[path->depth] = (struct bow__field_step){field, BOW__JSON_NO_INDEX};
}

static inline void bow__json_path_index(struct bow__json_path *path, size_t index)
{
    path->steps[path->depth].index = index;
}

/** Into the message that the field holds; false: that is too deep. */
static inline bool bow__json_path_down(struct bow__json_path *path)
{
    if (path->depth == path->max_depth) {
        return false;
    }
    path->steps[++path->depth].field = NULL;
    return true;
}

static inline void bow__json_path_up(struct bow__json_path *path)
{
    path->depth--;
}

/** Append the path to `text`. */
void bow__json_path_append(const struct bow__json_path *path, struct bow__text *text);

#endif
