/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_RESOURCE_H
#define BOWLINE_OTEL_RESOURCE_H

/* Who sends: the resource that goes along with each export. Constant once made. */

#include "opentelemetry/proto/resource/v1/resource.pb-c.h"
#include <bowline/arena.h>
#include <bowline/otel.h>

/** Make it of copies, in `arena`. NULL out of memory. */
Bow__Otel__Resource *bow__otel_resource(struct bow_arena *arena,
                                        const struct bow_otel_options *options);

#endif
