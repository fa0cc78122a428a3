/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writing a path into a text: long ones keep their beginning and their end. Knows
 * nothing of why it is told.
 */

#include "rpc/core/codec/field_path.h"

#define SHOWN_STEPS 4 /* at the beginning of a path, and at its end */

void bow__field_path_append_field(struct bow__text *text, const ProtobufCFieldDescriptor *field)
{
    if (field->name != NULL) {
        bow__text_printf(text, ".%s", field->name);
    } else {
        bow__text_printf(text, ".#%u", (unsigned)field->id);
    }
}

static void append_step(struct bow__text *text, struct bow__field_step step)
{
    bow__field_path_append_field(text, step.field);
    if (step.field->label == PROTOBUF_C_LABEL_REPEATED) {
        bow__text_printf(text, "[%zu]", step.index);
    }
}

void bow__field_path_append(struct bow__text *text, const ProtobufCMessageDescriptor *root,
                            bow__field_step_fn step, const void *user, size_t n_steps)
{
    size_t n_hidden = n_steps > 2 * SHOWN_STEPS ? n_steps - 2 * SHOWN_STEPS : 0;
    bow__text_printf(text, "%s", root->name != NULL ? root->name : "message");
    for (size_t i = 0; i < n_steps; i++) {
        if (i == SHOWN_STEPS && n_hidden > 0) {
            bow__text_printf(text, ".(%zu more)", n_hidden);
            i += n_hidden;
        }
        append_step(text, step(user, i));
    }
}
