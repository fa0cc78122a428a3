/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_FEATURES_H
#define BOWLINE_RPC_SCHEMA_FEATURES_H

/*
 * What a .proto's syntax or edition says of the fields in it, and options change, from the file to
 * its messages to their fields (https://protobuf.dev/editions/features/). Knows nothing of
 * descriptors.
 */

#include "rpc/schema/generated/schema.pb-c.h"
#include <stdbool.h>

/** google.protobuf.FeatureSet.FieldPresence */
enum { BOW__PRESENCE_EXPLICIT = 1, BOW__PRESENCE_IMPLICIT = 2, BOW__PRESENCE_REQUIRED = 3 };

struct bow__features {
    int32_t presence;
    bool is_packed;
    bool is_utf8;
    bool is_delimited;
};

/** Tell what holds in a file. False: it has a syntax or edition that is not known. */
bool bow__features_of_file(const Bow__Schema__File *proto, struct bow__features *ret_features);

/** Lay what `options` say (NULL: nothing) over what holds around it. */
struct bow__features bow__features_over(struct bow__features around,
                                        const Bow__Schema__Features *options);

#endif
