/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_SPANS_PRINT_H
#define BOWLINE_EXAMPLES_SPANS_PRINT_H

/*
 * A span as a line of text, its parts between tabs:
 *
 *     span    SERVICE    TRACE_ID    SPAN_ID    NAME    KEY=VALUE    KEY=VALUE ...
 *
 * Arrays are [A,B], lists of keys {KEY=VALUE,KEY=VALUE}, bytes hexadecimal. The text is a peer's:
 * what would end a line or a part of it, and a backslash, is \xNN.
 */

#include "trace.pb-c.h"

/** Write `span` of `service` to standard output, which may keep it in its buffer. */
void print_span(const char *service, const Opentelemetry__Proto__Trace__V1__Span *span);

#endif
