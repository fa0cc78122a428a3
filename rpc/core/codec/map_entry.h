/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_MAP_ENTRY_H
#define BOWLINE_RPC_CORE_CODEC_MAP_ENTRY_H

/*
 * Which repeated fields are maps. Bowline's generator says so; of descriptors that protoc-gen-c
 * made, names tell.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/** Whether the messages of `type` that `field` holds are entries of a map, by their names: as
 * protoc names entries. `field` may be NULL. */
bool bow__is_map_entry(const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessageDescriptor *type);

/** Whether `field` of a message of type `owner` is a map. */
bool bow__is_map(const ProtobufCMessageDescriptor *owner, const ProtobufCFieldDescriptor *field);

#endif
