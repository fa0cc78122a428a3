/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A path into a reason. */
#include "rpc/json/json_path.h"

static struct bow__field_step step_of(const void *steps, size_t i)
{
    return ((const struct bow__field_step *)steps)[i];
}

void bow__json_path_append(const struct bow__json_path *path, struct bow__text *text)
{
    struct bow__field_step last = path->steps[path->depth];

    bow__field_path_append(text, path->root, step_of, path->steps, path->depth);
    if (last.field == NULL) {
        return;
    }
    bow__field_path_append_field(text, last.field);
    if (last.field->label == PROTOBUF_C_LABEL_REPEATED && last.index != BOW__JSON_NO_INDEX) {
        bow__text_printf(text, "[%zu]", last.index);
    }
}
