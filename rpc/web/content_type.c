/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of content types. */

#include "rpc/web/content_type.h"

#include <string.h>
#include <strings.h>

/* The one that answers name stands before its other names. */
static const struct {
    const char *name;
    enum bow__web_kind kind;
    bool is_json;
} types[] = {
    {"application/json", BOW__WEB_CONNECT_UNARY, true},
    {"application/proto", BOW__WEB_CONNECT_UNARY, false},
    {"application/connect+json", BOW__WEB_CONNECT_STREAM, true},
    {"application/connect+proto", BOW__WEB_CONNECT_STREAM, false},
    {"application/grpc-web+proto", BOW__WEB_GRPC, false},
    {"application/grpc-web", BOW__WEB_GRPC, false},
    {"application/grpc-web-text+proto", BOW__WEB_GRPC_TEXT, false},
    {"application/grpc-web-text", BOW__WEB_GRPC_TEXT, false},
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

bool bow__web_content_type_read(struct bow_slice text, enum bow__web_kind *ret_kind,
                                bool *ret_is_json)
{
    const uint8_t *semicolon = text.len > 0 ? memchr(text.data, ';', text.len) : NULL;

    text.len = semicolon != NULL ? (size_t)(semicolon - text.data) : text.len;
    text = bow__text_trim(text);
    for (size_t i = 0; i < N_TYPES; i++) {
        if (strlen(types[i].name) == text.len &&
            strncasecmp((const char *)text.data, types[i].name, text.len) == 0) {
            *ret_kind = types[i].kind;
            *ret_is_json = types[i].is_json;
            return true;
        }
    }
    return false;
}

const char *bow__web_content_type(enum bow__web_kind kind, bool is_json)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (types[i].kind == kind && types[i].is_json == is_json) {
            return types[i].name;
        }
    }
    return "application/json";
}

const char *bow__web_content_types(void)
{
    return "application/json, application/proto, application/connect+json, "
           "application/connect+proto, application/grpc-web+proto, application/grpc-web-text+proto";
}
