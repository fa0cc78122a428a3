/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_READ_VALUE_H
#define BOWLINE_RPC_JSON_JSON_READ_VALUE_H

/* Values that come next in the text, into members of messages. */

#include "rpc/json/json_reader.h"

/** Reads the value of `field` to `member`, of the field's C type. */
typedef enum bow__json_got (*bow__json_value_fn)(struct bow__json_reader *r,
                                                 const ProtobufCFieldDescriptor *field,
                                                 void *member);

/** Read a number, bool, enum, string or bytes. */
enum bow__json_got bow__json_read_scalar(struct bow__json_reader *r,
                                         const ProtobufCFieldDescriptor *field, void *member);

/** Read an array into a repeated field, each element by `read`. */
bool bow__json_read_elements(struct bow__json_reader *r, ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field, bow__json_value_fn read);

/** Read an object into a map, each value by `read`. */
bool bow__json_read_entries(struct bow__json_reader *r, ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field, bow__json_value_fn read);

/** An empty message of `type`; NULL, and `error` is set, when there is no memory. */
ProtobufCMessage *bow__json_new(struct bow__json_reader *r, const ProtobufCMessageDescriptor *type);

/** Say that a field which is not repeated has its value. */
void bow__json_mark(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
