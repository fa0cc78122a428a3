/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decoding of protoc's request and of the plugin's parameter.
 */

#include "codegen/request.h"
#include "codegen/wire.h"

#include <string.h>

enum { REQUEST_FILES = 15 };

static const struct bow_slice *find_files(struct memory *memory, struct bow_slice bytes, size_t n)
{
    struct bow_slice *files = memory_array(memory, n, sizeof(*files));
    struct wire_field field;
    size_t n_found = 0;

    while (n_found < n && wire_next(&bytes, &field)) {
        if (field.number == REQUEST_FILES && field.type == 2) {
            files[n_found++] = field.bytes;
        }
    }
    return files;
}

bool request_decode(struct memory *memory, struct bow_slice bytes, struct request *ret_request)
{
    const ProtobufCMessageDescriptor *descriptor = &bowline__codegen__request__descriptor;

    if (!wire_is_safe(descriptor, bytes)) {
        return false;
    }
    const Bowline__Codegen__Request *message =
        (const Bowline__Codegen__Request *)protobuf_c_message_unpack(descriptor, &memory->allocator,
                                                                     bytes.len, bytes.data);
    if (message == NULL) {
        return false;
    }
    *ret_request = (struct request){
        .message = message,
        .files = find_files(memory, bytes, message->n_proto_file),
    };
    return true;
}

/* The value of `item` when it is "name=value" for this name, else NULL. */
static const char *value_for(const char *item, const char *name)
{
    size_t len = strlen(name);

    return strncmp(item, name, len) == 0 && item[len] == '=' && item[len + 1] != '\0'
               ? item + len + 1
               : NULL;
}

static bool read_value(const char *item, struct parameters *parameters)
{
    const char *dllexport_decl = value_for(item, "dllexport_decl");
    const char *header_prefix = value_for(item, "header_prefix");

    if (dllexport_decl != NULL) {
        parameters->dllexport_decl = dllexport_decl;
    }
    if (header_prefix != NULL) {
        parameters->header_prefix = header_prefix;
    }
    return dllexport_decl != NULL || header_prefix != NULL;
}

static bool read_word(const char *item, struct parameters *parameters)
{
    const struct {
        const char *name;
        bool *is_given;
    } words[] = {
        {"client", &parameters->client_only}, {"server", &parameters->server_only},
        {"lite", &parameters->lite},          {"no_json", &parameters->no_json},
        {"imports", &parameters->imports},    {"no_messages", &parameters->no_messages},
        {"list", &parameters->list},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(item, words[i].name) == 0) {
            *words[i].is_given = true;
            return true;
        }
    }
    return false;
}

static const char *read_parameter(struct memory *memory, const char *item,
                                  struct parameters *parameters)
{
    if (read_value(item, parameters) || read_word(item, parameters)) {
        return NULL;
    }
    return memory_printf(memory,
                         "option '%s' is not known: --bowline_opt takes client, server, lite, "
                         "no_json, no_messages, imports, list, header_prefix=DIR and "
                         "dllexport_decl=NAME",
                         item);
}

/* What none of them says by itself. */
static const char *check_together(const struct parameters *parameters)
{
    if (parameters->client_only && parameters->server_only) {
        return "options 'client' and 'server' leave nothing of a service: give one of them, or "
               "neither for both sides";
    }
    if (parameters->header_prefix != NULL && strpbrk(parameters->header_prefix, "\"\\\n") != NULL) {
        return "option 'header_prefix' is no folder that an #include can name";
    }
    return NULL;
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
    return check_together(ret_parameters);
}
