/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The resource: its name, what the program says of it, and which library this is. */

#include "otel/resource.h"
#include "otel/attributes.h"

#include <string.h>

static const char *dup(struct bow_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = bow_arena_alloc(arena, size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

Bow__Otel__Resource *bow__otel_resource(struct bow_arena *arena,
                                        const struct bow_otel_options *options)
{
    Bow__Otel__Resource *resource = bow_arena_alloc(arena, sizeof(*resource));
    struct bow__otel_attributes list;

    if (resource == NULL ||
        bow__otel_attributes_init(&list, arena, options->n_attributes + 4) < 0) {
        return NULL;
    }
    bow__otel_add_text(&list, "service.name", dup(arena, options->service_name));
    for (size_t i = 0; i < options->n_attributes; i++) {
        const struct bow_otel_attribute *attribute = &options->attributes[i];
        bow__otel_add_text(&list, dup(arena, attribute->key), dup(arena, attribute->value));
    }
    bow__otel_add_text(&list, "telemetry.sdk.name", "bowline");
    bow__otel_add_text(&list, "telemetry.sdk.language", "c");
    bow__otel_add_text(&list, "telemetry.sdk.version", BOW__VERSION);
    *resource = (Bow__Otel__Resource)BOW__OTEL__RESOURCE__INIT;
    resource->n_attributes = list.n;
    resource->attributes = list.list;
    return bow_arena_failed(arena) ? NULL : resource;
}
