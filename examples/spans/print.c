/* SPDX-License-Identifier: 0BSD */
/* Owns the text that stands for a span. Knows nothing of calls. */

#include "print.h"
#include <inttypes.h>
#include <stdio.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Trace__V1__Span Span;

static void print_text(const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < ' ' || byte == 0x7f || byte == '\\') {
            printf("\\x%02x", byte);
        } else {
            putchar(byte);
        }
    }
}

static void print_bytes(const ProtobufCBinaryData *bytes)
{
    for (size_t i = 0; i < bytes->len; i++) {
        printf("%02x", bytes->data[i]);
    }
}

static void print_value(const AnyValue *value);

static void print_key(const KeyValue *pair)
{
    print_text(pair->key);
    putchar('=');
    print_value(pair->value);
}

static void print_array(const Opentelemetry__Proto__Common__V1__ArrayValue *array)
{
    putchar('[');
    for (size_t i = 0; i < array->n_values; i++) {
        fputs(i > 0 ? "," : "", stdout);
        print_value(array->values[i]);
    }
    putchar(']');
}

static void print_list(const Opentelemetry__Proto__Common__V1__KeyValueList *list)
{
    putchar('{');
    for (size_t i = 0; i < list->n_values; i++) {
        fputs(i > 0 ? "," : "", stdout);
        print_key(list->values[i]);
    }
    putchar('}');
}

/* Values within values: no deeper than messages are decoded (BOW_LIMIT_MESSAGE_DEPTH). */
static void print_value(const AnyValue *value)
{
    switch (value != NULL ? value->value_case
                          : OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE__NOT_SET) {
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE:
        print_text(value->string_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE:
        fputs(value->bool_value ? "true" : "false", stdout);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE:
        printf("%" PRId64, value->int_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE:
        printf("%.17g", value->double_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE:
        print_array(value->array_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_KVLIST_VALUE:
        print_list(value->kvlist_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE:
        print_bytes(&value->bytes_value);
        break;
    default: /* none, or of a kind that came later */
        break;
    }
}

void print_span(const char *service, const Span *span)
{
    fputs("span\t", stdout);
    print_text(service);
    putchar('\t');
    print_bytes(&span->trace_id);
    putchar('\t');
    print_bytes(&span->span_id);
    putchar('\t');
    print_text(span->name);
    for (size_t i = 0; i < span->n_attributes; i++) {
        putchar('\t');
        print_key(span->attributes[i]);
    }
    putchar('\n');
}
