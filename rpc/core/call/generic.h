/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_GENERIC_H
#define BOWLINE_RPC_CORE_CALL_GENERIC_H

/*
 * Methods of calls whose messages nobody decodes: made for one call each, with the path it has, of
 * one template that is a stream both ways.
 */

#include "base/arena.h"
#include "rpc/core/codec/raw.h"
#include <bowline/generic.h>
#include <bowline/service.h>

/** The template; its path is for texts. */
extern const struct bow_method bow__generic_method;

static inline bool bow__method_is_generic(const struct bow_method *method)
{
    return method->input == &bow__raw_message__descriptor;
}

/** One with `path`, which it borrows and which bow__is_method_path(). */
struct bow_method bow__generic_method_of(const char *path);

/** One with a copy of `path` in `arena`, as long as what lies there. NULL out of memory. */
struct bow_method *bow__generic_method_new(struct bow__arena *arena, struct bow_slice path);

#endif
