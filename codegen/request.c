/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decoding of protoc's request and of the plugin's parameter.
 */

#include "codegen/request.h"
#include "codegen/wire.h"

#include <string.h>

Bowline__Codegen__Request *request_decode(struct memory *memory, struct bow_slice bytes)
{
    const ProtobufCMessageDescriptor *descriptor = &bowline__codegen__request__descriptor;

    if (!wire_is_safe(descriptor, bytes)) {
        return NULL;
    }
    return (Bowline__Codegen__Request *)protobuf_c_message_unpack(descriptor, &memory->allocator,
                                                                  bytes.len, bytes.data);
}

/* The value of `item` when it is "name=value" for this name, else NULL. */
static const char *value_for(const char *item, const char *name)
{
    size_t len = strlen(name);

    return strncmp(item, name, len) == 0 && item[len] == '=' ? item + len + 1 : NULL;
}

static const char *read_parameter(struct memory *memory, const char *item,
                                  struct parameters *parameters)
{
    const char *path = value_for(item, "protoc_gen_c");

    if (path != NULL && *path != '\0') {
        parameters->protoc_gen_c = path;
        return NULL;
    }
    if (value_for(item, "dllexport_decl") != NULL) {
        parameters->for_child = item;
        return NULL;
    }
    if (strcmp(item, "no_messages") == 0) {
        parameters->no_messages = true;
        return NULL;
    }
    return memory_printf(memory,
                         "option '%s' is not known: --bowline_opt takes protoc_gen_c=PATH, "
                         "dllexport_decl=NAME and no_messages",
                         item);
}

const char *request_read_parameters(struct memory *memory, const char *text,
                                    struct parameters *ret_parameters)
{
    *ret_parameters = (struct parameters){0};
    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, ",");
        const char *wrong =
            len > 0 ? read_parameter(memory, memory_dup(memory, text, len), ret_parameters) : NULL;
        if (wrong != NULL) {
            return wrong;
        }
        text += len + (text[len] == ',');
    }
    return NULL;
}
