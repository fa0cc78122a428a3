/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Features of syntaxes and editions. Knows nothing of descriptors. */
#include "rpc/schema/features.h"

#include <string.h>

/* google.protobuf.Edition */
enum { EDITION_2023 = 1000, EDITION_2024 = 1001 };
/* google.protobuf.FeatureSet */
enum { PACKED = 1, VERIFY = 2, DELIMITED = 2 };

static const struct bow__features proto2 = {.presence = BOW__PRESENCE_EXPLICIT};

static const struct bow__features proto3 = {
    .presence = BOW__PRESENCE_IMPLICIT,
    .is_packed = true,
    .is_utf8 = true,
};

static const struct bow__features editions = {
    .presence = BOW__PRESENCE_EXPLICIT,
    .is_packed = true,
    .is_utf8 = true,
};

bool bow__features_of_file(const Bow__Schema__File *proto, struct bow__features *ret_features)
{
    const char *syntax = proto->syntax != NULL ? proto->syntax : "proto2";

    if (strcmp(syntax, "proto2") == 0) {
        *ret_features = proto2;
        return true;
    }
    if (strcmp(syntax, "proto3") == 0) {
        *ret_features = proto3;
        return true;
    }
    if (strcmp(syntax, "editions") != 0 ||
        (proto->edition != EDITION_2023 && proto->edition != EDITION_2024)) {
        return false;
    }
    *ret_features =
        bow__features_over(editions, proto->options != NULL ? proto->options->features : NULL);
    return true;
}

struct bow__features bow__features_over(struct bow__features around,
                                        const Bow__Schema__Features *options)
{
    if (options == NULL) {
        return around;
    }
    if (options->field_presence != 0) {
        around.presence = options->field_presence;
    }
    if (options->repeated_field_encoding != 0) {
        around.is_packed = options->repeated_field_encoding == PACKED;
    }
    if (options->utf8_validation != 0) {
        around.is_utf8 = options->utf8_validation == VERIFY;
    }
    if (options->message_encoding != 0) {
        around.is_delimited = options->message_encoding == DELIMITED;
    }
    return around;
}
