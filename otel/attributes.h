/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_ATTRIBUTES_H
#define BOWLINE_OTEL_ATTRIBUTES_H

/* A list of attributes, as OTLP's messages have them, of a size that is known before. */

#include "opentelemetry/proto/common/v1/common.pb-c.h"
#include <bowline/arena.h>
#include <stddef.h>
#include <stdint.h>

struct bow__otel_attribute {
    Bow__Otel__KeyValue pair;
    Bow__Otel__AnyValue value;
};

struct bow__otel_attributes {
    struct bow__otel_attribute *made;
    Bow__Otel__KeyValue **list; /* of them */
    size_t n;
    size_t max;
};

/** With room for `max`, in `arena`. Returns 0 or -ENOMEM. */
int bow__otel_attributes_init(struct bow__otel_attributes *list, struct bow_arena *arena,
                              size_t max);

/** Append one; texts are borrowed. There is room. */
void bow__otel_add_text(struct bow__otel_attributes *list, const char *key, const char *value);
void bow__otel_add_number(struct bow__otel_attributes *list, const char *key, int64_t value);

#endif
