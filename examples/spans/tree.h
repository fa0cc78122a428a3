/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_SPANS_TREE_H
#define BOWLINE_EXAMPLES_SPANS_TREE_H

/*
 * Traces as trees: each span below its parent, those of one parent by when they began. What has no
 * parent among them is at the front of a line.
 *
 *     trace 4bf92f3577b34da6a3ce929d0e0e4736
 *     checkout: client demo.Greeter/SayHello, 3.120 ms
 *       greeter: server demo.Greeter/SayHello, 2.950 ms
 */

#include "trace.pb-c.h"

/** Bounded: a peer must not make it grow. */
#define TREE_MAX_SPANS 1024u

struct tree_span {
    char service[48];
    char name[96];
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_id[8]; /* zeros: none */
    int kind;
    int failed;
    uint64_t start_ns;
    uint64_t end_ns;
    int printed;
};

struct tree {
    struct tree_span spans[TREE_MAX_SPANS];
    size_t n;
    size_t n_left_out;
};

/** Copy what is needed of a span. */
void tree_add(struct tree *tree, const char *service,
              const Opentelemetry__Proto__Trace__V1__Span *span);

/** Write all traces to standard output. */
void tree_print(struct tree *tree);

#endif
