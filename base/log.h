/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_LOG_H
#define BOWLINE_BASE_LOG_H

/*
 * One line to the context's sink. Logged is only what no caller can see. Lines are cut at
 * 512 bytes; bytes of a peer must come through bow__text_escape().
 */

#include <bowline/context.h>

void bow__log(struct bow_context *context, enum bow_log_level level, const char *format, ...)
    BOW_PRINTF(3, 4);

/** Whether a line of that level would reach a sink: worth making it. */
bool bow__log_shows(const struct bow_context *context, enum bow_log_level level);

#endif
