/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_LOG_H
#define BOWLINE_BASE_LOG_H

/*
 * One line to the context's sink. Logged is only what no caller can see. Lines are cut at
 * 512 bytes; bytes of a peer must come through bow__text_escape().
 */

#include "base/shared.h"
#include <bowline/context.h>
#include <stdatomic.h>

BOW__SHARED void bow__log(struct bow_context *context, enum bow_log_level level, const char *format,
                          ...) BOW_PRINTF(3, 4);

/** Of lines that a peer can bring about, one in ten seconds: whether one is due. `due_ns` is when,
 * 0 at first. Thread: any. */
BOW__SHARED bool bow__log_is_due(_Atomic(uint64_t) *due_ns, uint64_t now_ns);

/** Whether a line of that level would reach a sink: worth making it. */
bool bow__log_shows(const struct bow_context *context, enum bow_log_level level);

#endif
