/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_OPTIONS_H
#define BOWLINE_TOOLS_BOWLINE_OPTIONS_H

/*
 * The command line, read. Each command says which options it has; one of another command is refused
 * with the name of those that have it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_REPEATED 64

/** Commands, as bits of what an option belongs to. */
enum {
    COMMAND_CALL = 1,
    COMMAND_LIST = 2,
    COMMAND_DESCRIBE = 4,
    COMMAND_PING = 8,
    COMMAND_HEALTH = 16,
    COMMAND_BENCH = 32,
    COMMAND_NEW = 64,
    COMMAND_WATCH = 128,
};

/** What the methods of bowline watch are in the order of: the greatest first, or their names. */
enum watch_sort {
    WATCH_BY_RATE,
    WATCH_BY_ERRORS,
    WATCH_BY_P99,
    WATCH_BY_IN_FLIGHT,
    WATCH_BY_NAME,
};

/** What may be given more than once, in order. */
struct repeated {
    const char *values[MAX_REPEATED];
    size_t n;
};

struct options {
    int command;
    const char *command_name;
    const char *args[3]; /* what is no option, in order */
    size_t n_args;

    /* The server. */
    bool tls, insecure;
    const char *ca, *cert, *key, *authority, *server_name;
    const char *token_file, *token_env;
    uint64_t connect_timeout_ns;

    /* The .proto. */
    struct repeated protos, import_dirs, protosets;

    /* Calls. */
    struct repeated headers;
    uint64_t deadline_ns; /* 0: the command's default */
    bool verbose, json, compact, always_print, watch;
    uint64_t max_message_bytes;

    /* bench; count and interval also of ping and watch. */
    uint64_t count, duration_ns, warm_up_ns, interval_ns;
    bool has_warm_up;
    double rate;
    uint32_t concurrency, connections;
    const char *html;
    enum watch_sort sort;
};

/** Read them. Returns EXIT_OK, or what to exit with: it has said why. `*ret_done`: nothing more is
 * to be done (--help). */
int options_read(struct options *options, int argc, char **argv, bool *ret_done);

/** Read "500ms", "2s", "1.5m", "3" (seconds). */
bool read_duration(const char *text, uint64_t *ret_ns);

#endif
