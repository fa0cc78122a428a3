/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_READ_KNOWN_H
#define BOWLINE_RPC_JSON_JSON_READ_KNOWN_H

/* Protobuf's own types from the form that JSON has for them. */

#include "rpc/json/json_reader.h"

/** Read Timestamp, Duration, FieldMask, Struct, Value, ListValue or a wrapper. */
bool bow__json_read_known(struct bow__json_reader *r, ProtobufCMessage *message,
                          enum bow__known_type kind);

#endif
