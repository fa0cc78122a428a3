/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_MESSAGE_PRINT_H
#define BOWLINE_MESSAGE_PRINT_H

/*
 * A message for people: one line for a log or a debugger. For programs there is <bowline/json.h>.
 *
 *     char line[200];
 *     bow_message_print(&request->base, line, sizeof(line));
 *     name: "Ada" tags: "a" tags: "b" address { city: "London" } password: [REDACTED]
 */

#include <bowline/visibility.h>
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Write `message` into `text` in the manner of protobuf's text format: fields that are set, by
 * their names in the .proto, enums by name, unknown fields by number; never a line break or any
 * other control character, and always UTF-8. A field declared secret, by the option
 * (bowline.secret) or debug_redact, is [REDACTED]; that is known for messages of Bowline's
 * generator. Of what an Any holds, and of unknown fields, which may be secret to who knows them,
 * only the length is shown: "value: [8 bytes]", "100: [2 bytes]".
 *
 * What does not fit is cut off, at the end of a character, and "…" stands behind it. It never
 * fails: NULL, for a message or inside one where a value is needed, is "NULL". No memory is taken,
 * and no more time than `size` needs, however large the message is. Of levels beyond
 * BOW_LIMIT_MESSAGE_DEPTH only "…" is shown.
 *
 * Thread:  any
 * Returns: the length of what is in `text`, without its NUL; 0, and nothing is written, when `size`
 *          is 0
 */
BOW_EXPORT size_t bow_message_print(const ProtobufCMessage *message, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
