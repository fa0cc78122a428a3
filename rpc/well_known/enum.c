/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Names and numbers of enums, whose descriptors may have been made without names. */
#include <bowline/well_known.h>
#include <errno.h>

const char *bow_enum_name(const ProtobufCEnumDescriptor *type, int32_t number)
{
    const ProtobufCEnumValue *value =
        type != NULL ? protobuf_c_enum_descriptor_get_value(type, number) : NULL;
    return value != NULL ? value->name : NULL;
}

int bow_enum_number(const ProtobufCEnumDescriptor *type, const char *name, int32_t *ret_number)
{
    if (type == NULL || name == NULL || type->values_by_name == NULL) {
        return -ENOENT;
    }
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (value == NULL) {
        return -ENOENT;
    }
    *ret_number = value->value;
    return 0;
}
