/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A picture as a line of JSON: times in seconds, all that is counted a second. */
#include "picture_show.h"
#include "say.h"

#include <inttypes.h>
#include <string.h>

static void put_string(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\":", name);
    say_json_string(file, text, strlen(text));
}

static void put_times(FILE *file, const struct picture_times *times)
{
    if (times->n == 0) {
        fprintf(file, "\"latency_seconds\":null");
        return;
    }
    fprintf(file, "\"latency_seconds\":{\"p50\":%.6f,\"p99\":%.6f,\"max\":%.6f}",
            (double)times->p50_us / 1e6, (double)times->p99_us / 1e6, (double)times->max_us / 1e6);
}

static void put_methods(FILE *file, const struct picture *picture)
{
    fprintf(file, ",\"methods\":[");
    for (size_t i = 0; i < picture->n_methods; i++) {
        const struct picture_method *method = &picture->methods[i];
        fprintf(file, "%s{", i > 0 ? "," : "");
        put_string(file, "method", method->name[0] == '/' ? method->name + 1 : method->name);
        fprintf(file,
                ",\"calls_per_second\":%.3f,\"errors_per_second\":%.3f,\"in_flight\":%" PRIu64 ",",
                method->calls, method->errors, method->in_flight);
        put_times(file, &method->times);
        fputc('}', file);
    }
    fputc(']', file);
}

static void put_loops(FILE *file, const struct picture *picture)
{
    fprintf(file, ",\"loops\":[");
    for (size_t i = 0; i < picture->n_loops; i++) {
        const struct picture_loop *loop = &picture->loops[i];
        const Told__Loop *told = loop->told;
        fprintf(file, "%s{", i > 0 ? "," : "");
        put_string(file, "name", told->name);
        fputc(',', file);
        put_string(file, "state", told->state);
        fputc(',', file);
        put_string(file, "held_by", told->held_by);
        fprintf(file,
                ",\"held_seconds\":%.6f,\"busy\":%.4f,\"turns_per_second\":%.3f,"
                "\"lag_seconds\":%.6f,\"max_turn_seconds\":%.6f,\"connections\":%" PRIu64
                ",\"calls\":%" PRIu64 "}",
                (double)told->held_us / 1e6, loop->busy, loop->turns, (double)told->lag_us / 1e6,
                (double)told->max_turn_us / 1e6, told->connections, told->calls);
    }
    fputc(']', file);
}

static void put_calls(FILE *file, const struct picture *picture)
{
    fprintf(file, ",\"slowest_calls\":[");
    for (size_t i = 0; i < picture->n_calls_shown; i++) {
        const Told__Call *call = picture->calls_shown[i];
        fprintf(file, "%s{", i > 0 ? "," : "");
        put_string(file, "method", call->method[0] == '/' ? call->method + 1 : call->method);
        fputc(',', file);
        put_string(file, "peer", call->peer);
        fputc(',', file);
        put_string(file, "stage", call->stage);
        fputc(',', file);
        put_string(file, "detail", call->detail);
        fprintf(file, ",\"age_seconds\":%.6f,\"left_seconds\":", (double)call->age_us / 1e6);
        if (call->_left_us_case == TOLD__CALL___LEFT_US_LEFT_US) {
            fprintf(file, "%.6f}", (double)call->left_us / 1e6);
        } else {
            fprintf(file, "null}");
        }
    }
    fputc(']', file);
}

static void put_limits(FILE *file, const struct picture *picture)
{
    fprintf(file, ",\"limits\":[");
    for (size_t i = 0; i < picture->n_limits; i++) {
        const struct picture_limit *limit = &picture->limits[i];
        fprintf(file, "%s{\"limit\":\"%s\",\"now\":%" PRIu64 ",\"of\":%" PRIu64 "}",
                i > 0 ? "," : "", limit->name, limit->now, limit->most);
    }
    fputc(']', file);
}

static void begin(FILE *file, const char *target, double time_s)
{
    fprintf(file, "{\"time\":%.3f,", time_s);
    put_string(file, "target", target);
}

void picture_json(const struct picture *picture, const char *target, double time_s, FILE *file)
{
    const Told__Server *told = picture->told;

    begin(file, target, time_s);
    fprintf(file,
            ",\"seconds\":%.6f,\"draining\":%s,\"calls_per_second\":%.3f,"
            "\"errors_per_second\":%.3f,\"in_flight\":%" PRIu64 ",\"connections\":%" PRIu64
            ",\"abandoned_calls\":%" PRIu64
            ",\"bytes_received_per_second\":%.3f,\"bytes_sent_per_second\":%.3f,",
            picture->seconds, told->draining ? "true" : "false", picture->calls, picture->errors,
            told->total_calls, told->total_connections, told->abandoned_calls,
            picture->bytes_received, picture->bytes_sent);
    put_times(file, &picture->times);
    put_methods(file, picture);
    put_loops(file, picture);
    put_calls(file, picture);
    put_limits(file, picture);
    fprintf(file, "}\n");
}

void picture_json_failed(const char *failure, const char *target, double time_s, FILE *file)
{
    begin(file, target, time_s);
    fputc(',', file);
    put_string(file, "error", failure);
    fprintf(file, "}\n");
}
