/* SPDX-License-Identifier: 0BSD */
/* Owns traces as trees. Knows nothing of calls. */

#include "tree.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Trace__V1__Span Span;

/* A peer may send an id of any length. */
static void copy_id(uint8_t *to, size_t size, const ProtobufCBinaryData *id)
{
    if (id->len == size) {
        memcpy(to, id->data, size);
    }
}

void tree_add(struct tree *tree, const char *service, const Span *span)
{
    if (tree->n == TREE_MAX_SPANS) {
        tree->n_left_out++;
        return;
    }
    struct tree_span *kept = &tree->spans[tree->n++];
    snprintf(kept->service, sizeof(kept->service), "%s", service);
    snprintf(kept->name, sizeof(kept->name), "%s", span->name);
    copy_id(kept->trace_id, sizeof(kept->trace_id), &span->trace_id);
    copy_id(kept->span_id, sizeof(kept->span_id), &span->span_id);
    copy_id(kept->parent_id, sizeof(kept->parent_id), &span->parent_span_id);
    kept->kind = (int)span->kind;
    kept->failed = span->status != NULL &&
                   span->status->code ==
                       OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    kept->start_ns = span->start_time_unix_nano;
    kept->end_ns = span->end_time_unix_nano;
}

static int by_trace_and_start(const void *a, const void *b)
{
    const struct tree_span *left = a;
    const struct tree_span *right = b;
    int order = memcmp(left->trace_id, right->trace_id, sizeof(left->trace_id));
    if (order != 0) {
        return order;
    }
    return left->start_ns < right->start_ns ? -1 : left->start_ns > right->start_ns;
}

static const char *kind_name(int kind)
{
    switch (kind) {
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER:
        return "server";
    case OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_CLIENT:
        return "client";
    default:
        return "span";
    }
}

static void print_line(struct tree_span *span, unsigned depth)
{
    printf("%*s%s: %s %s, %.3f ms%s\n", (int)(2 * depth), "", span->service, kind_name(span->kind),
           span->name, (double)(span->end_ns - span->start_ns) / 1e6,
           span->failed ? ", failed" : "");
    span->printed = 1;
}

static int is_child(const struct tree_span *child, const struct tree_span *parent)
{
    return memcmp(child->trace_id, parent->trace_id, sizeof(child->trace_id)) == 0 &&
           memcmp(child->parent_id, parent->span_id, sizeof(child->parent_id)) == 0;
}

/* Each once, whatever a peer says of parents; as deep as there are spans, which are bounded. */
static void print_below(struct tree *tree, struct tree_span *parent, unsigned depth)
{
    print_line(parent, depth);
    for (size_t i = 0; i < tree->n; i++) {
        if (!tree->spans[i].printed && is_child(&tree->spans[i], parent)) {
            print_below(tree, &tree->spans[i], depth + 1);
        }
    }
}

static int has_parent(const struct tree *tree, const struct tree_span *span)
{
    for (size_t i = 0; i < tree->n; i++) {
        if (is_child(span, &tree->spans[i])) {
            return 1;
        }
    }
    return 0;
}

static void print_trace_id(const struct tree_span *span)
{
    fputs("trace ", stdout);
    for (size_t i = 0; i < sizeof(span->trace_id); i++) {
        printf("%02x", span->trace_id[i]);
    }
    putchar('\n');
}

void tree_print(struct tree *tree)
{
    const struct tree_span *last = NULL;
    qsort(tree->spans, tree->n, sizeof(tree->spans[0]), by_trace_and_start);
    for (size_t i = 0; i < tree->n; i++) {
        struct tree_span *span = &tree->spans[i];
        if (last == NULL || memcmp(last->trace_id, span->trace_id, sizeof(span->trace_id)) != 0) {
            print_trace_id(span);
        }
        last = span;
        if (!span->printed && !has_parent(tree, span)) {
            print_below(tree, span, 0);
        }
    }
    if (tree->n_left_out > 0) {
        printf("and %zu spans more\n", tree->n_left_out);
    }
}
