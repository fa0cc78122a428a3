/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_MAP_KEYS_H
#define BOWLINE_RPC_JSON_MAP_KEYS_H

/*
 * Which entries of a map have the same key: a JSON object has each once. Few entries are compared
 * each with each, many are sorted, so that nobody can make it take quadratic time.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/** Entries up to which they are compared each with each, without memory. */
#define BOW__MAP_FEW 16u

/** An entry by its place in the map. */
typedef ProtobufCMessage *const *bow__map_place;

/** Whether two entries of one map have the same key. */
bool bow__map_same_key(const ProtobufCMessage *a, const ProtobufCMessage *b);

/** Of at most BOW__MAP_FEW entries, the first with the key of entry `i` behind that one, or NULL.
 */
const ProtobufCMessage *bow__map_find_later(ProtobufCMessage *const *entries, size_t n, size_t i);

/** Fill `places`, of `n`, with those of `entries` in the order of their keys, equal ones in that of
 * the map. */
void bow__map_sort(ProtobufCMessage *const *entries, size_t n, bow__map_place *places);

#endif
