/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Attributes in an arena. */

#include "otel/attributes.h"

#include <assert.h>
#include <errno.h>

int bow__otel_attributes_init(struct bow__otel_attributes *list, struct bow_arena *arena,
                              size_t max)
{
    *list = (struct bow__otel_attributes){.max = max};
    if (max > SIZE_MAX / sizeof(*list->made)) {
        return -ENOMEM;
    }
    list->made = bow_arena_alloc(arena, max * sizeof(*list->made));
    list->list = bow_arena_alloc(arena, max * sizeof(Bow__Otel__KeyValue *));
    return list->made != NULL && list->list != NULL ? 0 : -ENOMEM;
}

static Bow__Otel__AnyValue *add(struct bow__otel_attributes *list, const char *key)
{
    struct bow__otel_attribute *made = &list->made[list->n];

    assert(list->n < list->max);
    *made = (struct bow__otel_attribute){BOW__OTEL__KEY_VALUE__INIT, BOW__OTEL__ANY_VALUE__INIT};
    made->pair.key = key;
    made->pair.value = &made->value;
    list->list[list->n++] = &made->pair;
    return &made->value;
}

void bow__otel_add_text(struct bow__otel_attributes *list, const char *key, const char *value)
{
    Bow__Otel__AnyValue *made = add(list, key);

    made->value_case = BOW__OTEL__ANY_VALUE__VALUE_STRING_VALUE;
    made->string_value = value;
}

void bow__otel_add_number(struct bow__otel_attributes *list, const char *key, int64_t value)
{
    Bow__Otel__AnyValue *made = add(list, key);

    made->value_case = BOW__OTEL__ANY_VALUE__VALUE_INT_VALUE;
    made->int_value = value;
}
