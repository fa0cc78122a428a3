/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is done to messages: `messages OPERATION TYPE FILE N` does it N times to the message whose
 * JSON is in FILE, and says what one takes. messages_google.cc does the same by Google's C++.
 */
#include "deviceplugin.bow.h"
#include "etcd.bow.h"
#include "external_auth.bow.h"
#include "points.bow.h"
#include "trace_service.bow.h"

#include <bowline/json.h>
#include <bowline/message.h>
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
        fprintf(stderr, "messages: no text, or too long: %s\n", path);
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

/* What an operation starts from, whichever of it that needs. */
struct sample {
    const ProtobufCMessageDescriptor *type;
    const ProtobufCMessage *message;
    struct bow_slice text;
    struct bow_slice bytes;
    struct bow_arena *arena; /* empty before each */
};

static int read_text(const struct sample *sample)
{
    ProtobufCMessage *message = NULL;
    return bow_json_read(sample->type, sample->text, NULL, sample->arena, &message, NULL, 0);
}

static int write_text(const struct sample *sample)
{
    struct bow_slice text;
    return bow_json_write(sample->message, NULL, sample->arena, &text, NULL, 0);
}

static int decode(const struct sample *sample)
{
    ProtobufCMessage *message = NULL;
    return bow_message_decode(sample->type, sample->bytes, NULL, sample->arena, &message, NULL, 0);
}

static int encode(const struct sample *sample)
{
    static uint8_t room[1 << 22];
    size_t len = 0;
    return bow_message_encode(sample->message, room, sizeof room, &len);
}

static int copy(const struct sample *sample)
{
    return bow_message_clone(sample->message, sample->arena) != NULL ? 0 : -1;
}

static const struct {
    const char *name;
    int (*run)(const struct sample *sample);
} operations[] = {
    {"read", read_text}, {"write", write_text}, {"decode", decode},
    {"encode", encode},  {"clone", copy},
};

static size_t operation_of(const char *name)
{
    size_t i = 0;
    while (i < sizeof operations / sizeof operations[0] && strcmp(operations[i].name, name) != 0) {
        i++;
    }
    return i;
}

static int set_up(struct sample *sample, struct bow_arena *kept)
{
    ProtobufCMessage *message = NULL;
    char reason[200] = "no memory";
    if (bow_json_read(sample->type, sample->text, NULL, kept, &message, reason, sizeof reason) <
            0 ||
        bow_message_encode_new(message, kept, &sample->bytes) < 0) {
        fprintf(stderr, "messages: %s\n", reason);
        return -1;
    }
    sample->message = message;
    return 0;
}

int main(int argc, char **argv)
{
    struct sample sample = {.type = argc == 5 ? type_of(argv[2]) : NULL};
    size_t which = argc == 5 ? operation_of(argv[1]) : 0;
    if (sample.type == NULL || which == sizeof operations / sizeof operations[0]) {
        fprintf(stderr, "usage: messages read|write|decode|encode|clone TYPE FILE N\n");
        return 2;
    }
    size_t n = strtoul(argv[4], NULL, 10);
    struct bow_arena *kept = bow_arena_new(NULL, 0);
    sample.arena = bow_arena_new(NULL, 0);
    sample.text = file_bytes(argv[3]);
    int rc = set_up(&sample, kept);
    double begin = now_ns();
    for (size_t i = 0; i < n && rc == 0; i++) {
        bow_arena_reset(sample.arena);
        rc = operations[which].run(&sample);
    }
    if (rc == 0) {
        printf("{\"text_bytes\": %zu, \"bytes\": %zu, \"ns\": %.1f}\n", sample.text.len,
               sample.bytes.len, (now_ns() - begin) / (double)n);
    }
    bow_arena_free(sample.arena);
    bow_arena_free(kept);
    return rc == 0 ? 0 : 1;
}
