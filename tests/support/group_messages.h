/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_GROUP_MESSAGES_H
#define BOWLINE_TESTS_SUPPORT_GROUP_MESSAGES_H

/*
 * Messages with groups, their descriptors written by hand:
 *
 *     message Node {
 *       optional int32 number = 1;
 *       optional string text = 2;          // need not be UTF-8
 *       optional group Node part = 3;      // each group has the fields of a Node
 *       repeated group Node items = 4;
 *       oneof kind {
 *         group Node choice = 5;
 *         int32 other = 6;
 *       }
 *       optional Node plain = 7;           // no group
 *     }
 *     message Needs {
 *       required group Node must = 1;
 *       optional group Needs more = 2;
 *     }
 *     message Pairs { repeated PairsEntry pairs = 1; repeated KeyValue map = 2; }
 *     message PairsEntry { optional string key = 1; optional string value = 2; }
 *     message KeyValue { optional string key = 1; optional string value = 2; }
 *     message Set { option message_set_wire_format = true; }
 *
 * The info of KeyValue says that it is the entry of a map, that of PairsEntry does not: their names
 * would tell the opposite.
 */

#include <bowline/service.h>

enum { GROUP_NODE_KIND_NOT_SET = 0, GROUP_NODE_CHOICE = 5, GROUP_NODE_OTHER = 6 };

struct group_node {
    ProtobufCMessage base;
    protobuf_c_boolean has_number;
    int32_t number;
    char *text;
    struct group_node *part;
    size_t n_items;
    struct group_node **items;
    int kind_case;
    union {
        struct group_node *choice;
        int32_t other;
    };
    struct group_node *plain;
};

struct group_needs {
    ProtobufCMessage base;
    struct group_node *must;
    struct group_needs *more;
};

struct group_pair {
    ProtobufCMessage base;
    char *key;
    char *value;
};

struct group_pairs {
    ProtobufCMessage base;
    size_t n_pairs;
    struct group_pair **pairs;
    size_t n_map;
    struct group_pair **map;
};

extern const ProtobufCMessageDescriptor group_node_descriptor;
extern const ProtobufCMessageDescriptor group_needs_descriptor;
extern const ProtobufCMessageDescriptor group_pairs_descriptor;
extern const ProtobufCMessageDescriptor group_set_descriptor; /* a bare ProtobufCMessage */

#endif
