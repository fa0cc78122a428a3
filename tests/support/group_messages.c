/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The descriptors. They have no init function: the codec takes what it needs from them. */
#include "tests/support/group_messages.h"

#define OFFSET(type, member) offsetof(struct type, member)

static const ProtobufCFieldDescriptor node_fields[] = {
    {.name = "number",
     .id = 1,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_INT32,
     .quantifier_offset = OFFSET(group_node, has_number),
     .offset = OFFSET(group_node, number)},
    {.name = "text",
     .id = 2,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_STRING,
     .offset = OFFSET(group_node, text),
     .flags = BOW_DESCRIPTOR_UNCHECKED},
    {.name = "part",
     .id = 3,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .offset = OFFSET(group_node, part),
     .descriptor = &group_node_descriptor,
     .flags = BOW_DESCRIPTOR_GROUP},
    {.name = "items",
     .id = 4,
     .label = PROTOBUF_C_LABEL_REPEATED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .quantifier_offset = OFFSET(group_node, n_items),
     .offset = OFFSET(group_node, items),
     .descriptor = &group_node_descriptor,
     .flags = BOW_DESCRIPTOR_GROUP},
    {.name = "choice",
     .id = GROUP_NODE_CHOICE,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .quantifier_offset = OFFSET(group_node, kind_case),
     .offset = OFFSET(group_node, choice),
     .descriptor = &group_node_descriptor,
     .flags = (uint32_t)PROTOBUF_C_FIELD_FLAG_ONEOF | BOW_DESCRIPTOR_GROUP},
    {.name = "other",
     .id = GROUP_NODE_OTHER,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_INT32,
     .quantifier_offset = OFFSET(group_node, kind_case),
     .offset = OFFSET(group_node, other),
     .flags = PROTOBUF_C_FIELD_FLAG_ONEOF},
    {.name = "plain",
     .id = 7,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .offset = OFFSET(group_node, plain),
     .descriptor = &group_node_descriptor},
};
static const ProtobufCIntRange node_ranges[] = {{1, 0}, {0, 7}};

const ProtobufCMessageDescriptor group_node_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.Node",
    .short_name = "Node",
    .sizeof_message = sizeof(struct group_node),
    .n_fields = 7,
    .fields = node_fields,
    .n_field_ranges = 1,
    .field_ranges = node_ranges,
};

static const ProtobufCFieldDescriptor needs_fields[] = {
    {.name = "must",
     .id = 1,
     .label = PROTOBUF_C_LABEL_REQUIRED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .offset = OFFSET(group_needs, must),
     .descriptor = &group_node_descriptor,
     .flags = BOW_DESCRIPTOR_GROUP},
    {.name = "more",
     .id = 2,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .offset = OFFSET(group_needs, more),
     .descriptor = &group_needs_descriptor,
     .flags = BOW_DESCRIPTOR_GROUP},
};
static const ProtobufCIntRange two_ranges[] = {{1, 0}, {0, 2}};

const ProtobufCMessageDescriptor group_needs_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.Needs",
    .short_name = "Needs",
    .sizeof_message = sizeof(struct group_needs),
    .n_fields = 2,
    .fields = needs_fields,
    .n_field_ranges = 1,
    .field_ranges = two_ranges,
};

static const ProtobufCFieldDescriptor pair_fields[] = {
    {.name = "key",
     .id = 1,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_STRING,
     .offset = OFFSET(group_pair, key)},
    {.name = "value",
     .id = 2,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_STRING,
     .offset = OFFSET(group_pair, value)},
};

/* Named as the entry of a map called pairs is. */
static const struct bow_message_info pair_info = {.full_name = "groups.PairsEntry"};
static const ProtobufCMessageDescriptor pair_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.PairsEntry",
    .short_name = "PairsEntry",
    .sizeof_message = sizeof(struct group_pair),
    .n_fields = 2,
    .fields = pair_fields,
    .n_field_ranges = 1,
    .field_ranges = two_ranges,
    .reserved1 = (void *)(uintptr_t)&pair_info,
};

static const struct bow_message_info entry_info = {.full_name = "groups.KeyValue",
                                                   .flags = BOW_MESSAGE_MAP_ENTRY};
static const ProtobufCMessageDescriptor entry_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.KeyValue",
    .short_name = "KeyValue",
    .sizeof_message = sizeof(struct group_pair),
    .n_fields = 2,
    .fields = pair_fields,
    .n_field_ranges = 1,
    .field_ranges = two_ranges,
    .reserved1 = (void *)(uintptr_t)&entry_info,
};

static const ProtobufCFieldDescriptor pairs_fields[] = {
    {.name = "pairs",
     .id = 1,
     .label = PROTOBUF_C_LABEL_REPEATED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .quantifier_offset = OFFSET(group_pairs, n_pairs),
     .offset = OFFSET(group_pairs, pairs),
     .descriptor = &pair_descriptor},
    {.name = "map",
     .id = 2,
     .label = PROTOBUF_C_LABEL_REPEATED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .quantifier_offset = OFFSET(group_pairs, n_map),
     .offset = OFFSET(group_pairs, map),
     .descriptor = &entry_descriptor},
};

const ProtobufCMessageDescriptor group_pairs_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.Pairs",
    .short_name = "Pairs",
    .sizeof_message = sizeof(struct group_pairs),
    .n_fields = 2,
    .fields = pairs_fields,
    .n_field_ranges = 1,
    .field_ranges = two_ranges,
};

static const struct bow_message_info set_info = {.full_name = "groups.Set",
                                                 .flags = BOW_MESSAGE_SET};
static const ProtobufCIntRange no_ranges[] = {{0, 0}};

const ProtobufCMessageDescriptor group_set_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "groups.Set",
    .short_name = "Set",
    .sizeof_message = sizeof(ProtobufCMessage),
    .field_ranges = no_ranges,
    .reserved1 = (void *)(uintptr_t)&set_info,
};
