/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages into an Any and out of it. Knows nothing of a registry of types: who asks names one. */
#include "rpc/messages/storage.h"
#include "rpc/well_known/known_type.h"
#include <bowline/message.h>
#include <bowline/well_known.h>
#include <errno.h>

#define URL_PREFIX "type.googleapis.com/"

/* The URL of a type, as bow_message_encode_new() gives bytes. */
static char *make_url(const char *name, struct bow_arena *arena)
{
    size_t prefix = strlen(URL_PREFIX), len = strlen(name);
    char *url = bow__storage_take(arena, prefix + len + 1);

    if (url != NULL) {
        memcpy(url, URL_PREFIX, prefix);
        memcpy(url + prefix, name, len + 1);
    }
    return url;
}

int bow_any_pack(ProtobufCMessage *any, const ProtobufCMessage *message, struct bow_arena *arena)
{
    struct bow_slice bytes;

    if (!bow__known_is(any, BOW__KNOWN_ANY) || message == NULL || message->descriptor == NULL ||
        message->descriptor->name == NULL) {
        return -EINVAL;
    }
    int rc = bow_message_encode_new(message, arena, &bytes);
    if (rc < 0) {
        return rc;
    }
    char *url = make_url(message->descriptor->name, arena);
    if (url == NULL) {
        bow__storage_drop(arena, (void *)(uintptr_t)bytes.data);
        return -ENOMEM;
    }
    /* Both are this message's now, so that what it had is let go of as a whole. */
    bow_message_clear(any, arena);
    *(char **)bow__known_member(any, BOW__ANY_TYPE_URL) = url;
    *(ProtobufCBinaryData *)bow__known_member(any, BOW__ANY_VALUE) =
        (ProtobufCBinaryData){.len = bytes.len, .data = (uint8_t *)(uintptr_t)bytes.data};
    return 0;
}

bool bow_any_is(const ProtobufCMessage *any, const ProtobufCMessageDescriptor *type)
{
    if (!bow__known_is(any, BOW__KNOWN_ANY) || type == NULL || type->name == NULL) {
        return false;
    }
    const char *url = *(const char *const *)bow__known_member(any, BOW__ANY_TYPE_URL);
    return strcmp(bow__known_any_name(url), type->name) == 0;
}

int bow_any_unpack(const ProtobufCMessage *any, const ProtobufCMessageDescriptor *type,
                   struct bow_arena *arena, ProtobufCMessage **ret_message)
{
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;

    if (!bow__known_is(any, BOW__KNOWN_ANY) || type == NULL) {
        return -EINVAL;
    }
    if (!bow_any_is(any, type)) {
        return -ENOMSG;
    }
    const ProtobufCBinaryData *bytes = bow__known_member(any, BOW__ANY_VALUE);
    options.max_message_bytes = bytes->len > 0 ? bytes->len : 1; /* they are here already */
    return bow_message_decode(type, (struct bow_slice){bytes->data, bytes->len}, &options, arena,
                              ret_message, NULL, 0);
}
