/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages as JSON and back: `json TYPE FILE N` reads the text of FILE and writes its message, N
 * times each, and says what one takes. json_google.cc does the same by Google's C++.
 */
#include "deviceplugin.bow.h"
#include "etcd.bow.h"
#include "external_auth.bow.h"
#include "points.bow.h"
#include "trace_service.bow.h"

#include <bowline/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    const ProtobufCMessageDescriptor *type;
} types[] = {
    {"spans",
     &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor},
    {"range", &etcdserverpb__range_response__descriptor},
    {"check", &envoy__service__auth__v3__check_request__descriptor},
    {"devices", &v1beta1__list_and_watch_response__descriptor},
    {"points", &points__points__descriptor},
};

static const ProtobufCMessageDescriptor *type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].type;
        }
    }
    return NULL;
}

static struct bow_slice file_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 22];
    size_t len = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (len == 0 || len == sizeof bytes) {
        fprintf(stderr, "json: no text, or too long: %s\n", path);
        exit(1);
    }
    fclose(file);
    return (struct bow_slice){bytes, len};
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static ProtobufCMessage *read_text(const ProtobufCMessageDescriptor *type, struct bow_slice text,
                                   struct bow_arena *arena)
{
    ProtobufCMessage *message = NULL;
    char reason[200];
    if (bow_json_read(type, text, NULL, arena, &message, reason, sizeof reason) < 0) {
        fprintf(stderr, "json: %s\n", reason);
        exit(1);
    }
    return message;
}

static struct bow_slice write_text(const ProtobufCMessage *message, struct bow_arena *arena)
{
    struct bow_slice text;
    char reason[200];
    if (bow_json_write(message, NULL, arena, &text, reason, sizeof reason) < 0) {
        fprintf(stderr, "json: %s\n", reason);
        exit(1);
    }
    return text;
}

int main(int argc, char **argv)
{
    const ProtobufCMessageDescriptor *type = argc == 4 ? type_of(argv[1]) : NULL;
    if (type == NULL) {
        fprintf(stderr, "usage: json TYPE FILE N\n");
        return 2;
    }
    struct bow_slice text = file_bytes(argv[2]);
    size_t n = strtoul(argv[3], NULL, 10);
    struct bow_arena *arena = bow_arena_new(NULL, 0), *kept = bow_arena_new(NULL, 0);
    double begin = now_ns();
    for (size_t i = 0; i < n; i++) {
        bow_arena_reset(arena);
        (void)read_text(type, text, arena);
    }
    double middle = now_ns();
    const ProtobufCMessage *message = read_text(type, text, kept);
    size_t len = 0;
    double written = now_ns();
    for (size_t i = 0; i < n; i++) {
        bow_arena_reset(arena);
        len = write_text(message, arena).len;
    }
    printf("{\"bytes\": %zu, \"read_ns\": %.0f, \"write_ns\": %.0f}\n", len,
           (middle - begin) / (double)n, (now_ns() - written) / (double)n);
    bow_arena_free(arena);
    bow_arena_free(kept);
    return 0;
}
