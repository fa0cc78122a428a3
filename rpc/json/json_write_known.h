/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_WRITE_KNOWN_H
#define BOWLINE_RPC_JSON_JSON_WRITE_KNOWN_H

/* Protobuf's own types in the form that JSON has for them. */

#include "rpc/json/json_writer.h"

/** Write Timestamp, Duration, FieldMask, Struct, Value, ListValue or a wrapper. */
bool bow__json_write_known(struct bow__json_writer *w, const ProtobufCMessage *message,
                           enum bow__known_type kind);

#endif
