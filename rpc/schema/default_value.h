/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_DEFAULT_VALUE_H
#define BOWLINE_RPC_SCHEMA_DEFAULT_VALUE_H

#include "rpc/schema/schema.h"

/**
 * Read what a .proto says of a field's default, and make it what protobuf-c's default_value points
 * to. `values` is the field's enum, if it is one.
 *
 * Returns 0; -EBADMSG, and nothing is said of it; -ENOMEM.
 */
int bow__schema_default(struct bow_schema *schema, ProtobufCType type,
                        const Bow__Schema__Enum *values, struct bow_slice text,
                        const void **ret_default);

#endif
