/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The command line. What a command does with it is none of this file's business. */
#include "options.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define MAX_DURATION_S 1e6

enum {
    OPTION_FIRST = 256,
    OPTION_ALWAYS_PRINT,
    OPTION_AUTHORITY,
    OPTION_CA,
    OPTION_CERT,
    OPTION_COMPACT,
    OPTION_CONNECT_TIMEOUT,
    OPTION_CONNECTIONS,
    OPTION_DEADLINE,
    OPTION_HTML,
    OPTION_INSECURE,
    OPTION_INTERVAL,
    OPTION_JSON,
    OPTION_KEY,
    OPTION_MAX_MESSAGE,
    OPTION_PROTO,
    OPTION_PROTOSET,
    OPTION_RATE,
    OPTION_SERVER_NAME,
    OPTION_SORT,
    OPTION_TLS,
    OPTION_TOKEN_ENV,
    OPTION_TOKEN_FILE,
    OPTION_WARM_UP,
    OPTION_WATCH,
};

#define TO_SERVER                                                                                  \
    (COMMAND_CALL | COMMAND_LIST | COMMAND_DESCRIBE | COMMAND_PING | COMMAND_HEALTH | COMMAND_BENCH)
#define OF_SCHEMA (COMMAND_CALL | COMMAND_LIST | COMMAND_DESCRIBE | COMMAND_BENCH)
/* Those that watch has, too. */
#define ASKING (TO_SERVER | COMMAND_WATCH)
#define CALLING (COMMAND_CALL | COMMAND_PING | COMMAND_HEALTH | COMMAND_BENCH)

/* One option: who has it, and its line of help. */
struct described {
    struct option option;
    int letter; /* 0: none */
    int commands;
    const char *value; /* NULL: takes none */
    const char *help;
};

static const struct described all[] = {
    {{"tls", 0, NULL, OPTION_TLS}, 0, TO_SERVER, NULL, "speak TLS, and trust the system's CAs"},
    {{"ca", 1, NULL, OPTION_CA}, 0, TO_SERVER, "FILE", "speak TLS, and trust these CAs (PEM)"},
    {{"cert", 1, NULL, OPTION_CERT}, 0, TO_SERVER, "FILE", "certificate to show to the server"},
    {{"key", 1, NULL, OPTION_KEY}, 0, TO_SERVER, "FILE", "its key, when it is not in that file"},
    {{"insecure", 0, NULL, OPTION_INSECURE},
     0,
     TO_SERVER,
     NULL,
     "speak TLS, and do not ask who the server is"},
    {{"authority", 1, NULL, OPTION_AUTHORITY},
     0,
     TO_SERVER,
     "NAME",
     "whom calls are for, as gRPC tells it; with TLS also --server-name, without its port"},
    {{"server-name", 1, NULL, OPTION_SERVER_NAME},
     0,
     TO_SERVER,
     "NAME",
     "whom the server has to prove to be by TLS, in place of the target's host"},
    {{"token-file", 1, NULL, OPTION_TOKEN_FILE},
     0,
     TO_SERVER,
     "FILE",
     "send the bearer token in FILE with each call"},
    {{"token-env", 1, NULL, OPTION_TOKEN_ENV},
     0,
     TO_SERVER,
     "NAME",
     "send the bearer token in the environment's NAME"},
    {{"connect-timeout", 1, NULL, OPTION_CONNECT_TIMEOUT},
     0,
     ASKING,
     "TIME",
     "for one attempt to connect (5s); watch: for each answer"},
    {{"proto", 1, NULL, OPTION_PROTO},
     0,
     OF_SCHEMA,
     "FILE",
     "take the methods from this .proto, by protoc; may be repeated"},
    {{"import", 1, NULL, 'I'},
     'I',
     OF_SCHEMA,
     "DIR",
     "where --proto and what it imports lie; may be repeated"},
    {{"protoset", 1, NULL, OPTION_PROTOSET},
     0,
     OF_SCHEMA,
     "FILE",
     "take them from a file of protoc --descriptor_set_out --include_imports"},
    {{"header", 1, NULL, 'H'},
     'H',
     CALLING,
     "KEY: VALUE",
     "send metadata; of a key that ends in -bin the value is base64; may be repeated"},
    {{"deadline", 1, NULL, OPTION_DEADLINE},
     0,
     CALLING,
     "TIME",
     "for each call: 500ms, 2s, 1m (30s; of streams none)"},
    {{"verbose", 0, NULL, 'v'},
     'v',
     COMMAND_CALL,
     NULL,
     "show method, headers, trailers and times, on standard error"},
    {{"compact", 0, NULL, OPTION_COMPACT}, 0, COMMAND_CALL, NULL, "a message a line"},
    {{"always-print", 0, NULL, OPTION_ALWAYS_PRINT},
     0,
     COMMAND_CALL,
     NULL,
     "show fields that have their default, too"},
    {{"max-message", 1, NULL, OPTION_MAX_MESSAGE},
     0,
     CALLING,
     "BYTES",
     "of a message that is received (64 MiB)"},
    {{"json", 0, NULL, OPTION_JSON}, 0, ASKING, NULL, "results for programs: JSON"},
    {{"watch", 0, NULL, OPTION_WATCH}, 0, COMMAND_HEALTH, NULL, "go on, and tell each change"},
    {{"count", 1, NULL, 'n'},
     'n',
     COMMAND_PING | COMMAND_BENCH | COMMAND_WATCH,
     "N",
     "ping: so many round trips (4); bench: so many calls; watch: so many intervals, and end"},
    {{"interval", 1, NULL, OPTION_INTERVAL},
     0,
     COMMAND_PING | COMMAND_WATCH,
     "TIME",
     "between two (1s)"},
    {{"sort", 1, NULL, OPTION_SORT},
     0,
     COMMAND_WATCH,
     "KEY",
     "methods by rate, errors, p99, in-flight or name (rate)"},
    {{"duration", 1, NULL, 'd'}, 'd', COMMAND_BENCH, "TIME", "measure for so long (10s)"},
    {{"concurrency", 1, NULL, 'c'}, 'c', COMMAND_BENCH, "N", "calls at once, at most (50)"},
    {{"connections", 1, NULL, OPTION_CONNECTIONS},
     0,
     COMMAND_BENCH,
     "N",
     "spread over so many (1)"},
    {{"rate", 1, NULL, OPTION_RATE},
     'r',
     COMMAND_BENCH,
     "N",
     "begin so many calls a second, whatever the server does; latencies count from when a call "
     "should have begun"},
    {{"warm-up", 1, NULL, OPTION_WARM_UP},
     0,
     COMMAND_BENCH,
     "TIME",
     "before anything is measured (1s)"},
    {{"html", 1, NULL, OPTION_HTML}, 0, COMMAND_BENCH, "FILE", "write a report, one page"},
    {{"help", 0, NULL, 'h'}, 'h', ~0, NULL, "this"},
};
#define N_ALL (sizeof(all) / sizeof(all[0]))

struct command {
    const char *name;
    int bit;
    size_t min_args, max_args;
    const char *synopsis;
    const char *help;
};

static const struct command commands[] = {
    {"call", COMMAND_CALL, 2, 3, "TARGET METHOD [JSON | @FILE | -]",
     "call a method: messages as JSON in, as JSON out"},
    {"list", COMMAND_LIST, 0, 2, "[TARGET] [SERVICE]",
     "the services of a server, or the methods of one"},
    {"describe", COMMAND_DESCRIBE, 0, 2, "[TARGET] [SYMBOL]",
     "what is declared, as the text of a .proto"},
    {"ping", COMMAND_PING, 1, 1, "TARGET", "does it answer, how fast, and what does it speak"},
    {"health", COMMAND_HEALTH, 1, 2, "TARGET [SERVICE]", "does it serve: for probes"},
    {"bench", COMMAND_BENCH, 2, 3, "TARGET METHOD [JSON | @FILE]",
     "calls at full speed or at a rate, and how long they took"},
    {"watch", COMMAND_WATCH, 1, 1, "TARGET", "what a server does now, by its operations listener"},
    {"new", COMMAND_NEW, 1, 1, "NAME", "write a small service with its builds, to begin with"},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Help */

static void show_usage(FILE *file)
{
    fprintf(file, "usage: bowline COMMAND ...\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        fprintf(file, "  %s %s\n      %s\n", commands[i].name, commands[i].synopsis,
                commands[i].help);
    }
    fprintf(
        file,
        "\nTARGET is HOST:PORT, unix:PATH and what else clients of the library take; with "
        "grpc: in front\nthe tool speaks gRPC, without it Bowline's own protocol. Of watch it is "
        "the server's\noperations listener: HOST:PORT or unix:PATH.\n"
        "bowline COMMAND --help shows the options, bowline --version the version.\n");
}

static void show_help(const struct command *command)
{
    printf("usage: bowline %s [OPTION]... %s\n\n%s\n\n", command->name, command->synopsis,
           command->help);
    for (size_t i = 0; i < N_ALL; i++) {
        char names[64];
        if ((all[i].commands & command->bit) == 0) {
            continue;
        }
        snprintf(names, sizeof(names), "%c%c%c --%s %s", all[i].letter != 0 ? '-' : ' ',
                 all[i].letter != 0 ? all[i].letter : ' ', all[i].letter != 0 ? ',' : ' ',
                 all[i].option.name, all[i].value != NULL ? all[i].value : "");
        printf("  %-28s %s\n", names, all[i].help);
    }
}

/* Values */

bool read_duration(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", NS_PER_S}, {"s", NS_PER_S},      {"ms", 1e6},           {"us", 1e3},
                 {"ns", 1},      {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};
    char *end;
    double value = strtod(text, &end);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0 && value >= 0 &&
            value * units[i].ns <= MAX_DURATION_S * NS_PER_S) {
            *ret_ns = (uint64_t)(value * units[i].ns);
            return true;
        }
    }
    return false;
}

static int wrong_value(const struct described *option, const char *value, const char *expected)
{
    return say_failed(EXIT_USAGE, "--%s: \"%s\" is not %s", option->option.name, value, expected);
}

static int take_duration(const struct described *option, const char *value, uint64_t *ret)
{
    bool may_be_zero = option->option.val == OPTION_WARM_UP; /* of the others it is the default */
    uint64_t ns;

    if (!read_duration(value, &ns)) {
        return wrong_value(option, value, "a time such as 500ms, 2s or 1m");
    }
    if (ns == 0 && !may_be_zero) {
        return wrong_value(option, value, "a time above 0");
    }
    *ret = ns;
    return EXIT_OK;
}

static int take_count(const struct described *option, const char *value, uint64_t max,
                      uint64_t *ret)
{
    char *end;

    errno = 0;
    uint64_t n = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0' || errno != 0 || n == 0 || n > max) {
        char expected[80];
        snprintf(expected, sizeof(expected), "a number from 1 to %llu", (unsigned long long)max);
        return wrong_value(option, value, expected);
    }
    *ret = n;
    return EXIT_OK;
}

static int take_small_count(const struct described *option, const char *value, uint32_t max,
                            uint32_t *ret)
{
    uint64_t n = 0;
    int rc = take_count(option, value, max, &n);

    if (rc == EXIT_OK) {
        *ret = (uint32_t)n;
    }
    return rc;
}

static int take_rate(const struct described *option, const char *value, double *ret)
{
    char *end;
    double rate = strtod(value, &end);

    if (end == value || *end != '\0' || !(rate > 0) || rate > 1e7) {
        return wrong_value(option, value, "a number of calls a second, up to 10000000");
    }
    *ret = rate;
    return EXIT_OK;
}

static int take_repeated(const struct described *option, const char *value, struct repeated *list)
{
    if (list->n == MAX_REPEATED) {
        return say_failed(EXIT_USAGE, "--%s is given more than %d times", option->option.name,
                          MAX_REPEATED);
    }
    list->values[list->n++] = value;
    return EXIT_OK;
}

static int take_sort(const struct described *option, const char *value, enum watch_sort *ret)
{
    static const char *const names[] = {
        [WATCH_BY_RATE] = "rate",           [WATCH_BY_ERRORS] = "errors", [WATCH_BY_P99] = "p99",
        [WATCH_BY_IN_FLIGHT] = "in-flight", [WATCH_BY_NAME] = "name",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            *ret = (enum watch_sort)i;
            return EXIT_OK;
        }
    }
    return wrong_value(option, value, "one of rate, errors, p99, in-flight and name");
}

static int take(struct options *it, const struct described *option, const char *value)
{
    switch (option->option.val) {
    case OPTION_TLS:
        it->tls = true;
        return EXIT_OK;
    case OPTION_INSECURE:
        it->tls = it->insecure = true;
        return EXIT_OK;
    case OPTION_CA:
        it->tls = true;
        it->ca = value;
        return EXIT_OK;
    case OPTION_CERT:
        it->tls = true;
        it->cert = value;
        return EXIT_OK;
    case OPTION_KEY:
        it->key = value;
        return EXIT_OK;
    case OPTION_AUTHORITY:
        it->authority = value;
        return EXIT_OK;
    case OPTION_SERVER_NAME:
        it->server_name = value;
        return EXIT_OK;
    case OPTION_TOKEN_FILE:
        it->token_file = value;
        return EXIT_OK;
    case OPTION_TOKEN_ENV:
        it->token_env = value;
        return EXIT_OK;
    case OPTION_CONNECT_TIMEOUT:
        return take_duration(option, value, &it->connect_timeout_ns);
    case OPTION_PROTO:
        return take_repeated(option, value, &it->protos);
    case 'I':
        return take_repeated(option, value, &it->import_dirs);
    case OPTION_PROTOSET:
        return take_repeated(option, value, &it->protosets);
    case 'H':
        return take_repeated(option, value, &it->headers);
    case OPTION_DEADLINE:
        return take_duration(option, value, &it->deadline_ns);
    case 'v':
        it->verbose = true;
        return EXIT_OK;
    case OPTION_COMPACT:
        it->compact = true;
        return EXIT_OK;
    case OPTION_ALWAYS_PRINT:
        it->always_print = true;
        return EXIT_OK;
    case OPTION_MAX_MESSAGE:
        return take_count(option, value, INT32_MAX, &it->max_message_bytes);
    case OPTION_JSON:
        it->json = true;
        return EXIT_OK;
    case OPTION_WATCH:
        it->watch = true;
        return EXIT_OK;
    case 'n':
        return take_count(option, value, UINT64_MAX, &it->count);
    case OPTION_INTERVAL:
        return take_duration(option, value, &it->interval_ns);
    case 'd':
        return take_duration(option, value, &it->duration_ns);
    case 'c':
        return take_small_count(option, value, 100000, &it->concurrency);
    case OPTION_CONNECTIONS:
        return take_small_count(option, value, 1000, &it->connections);
    case OPTION_RATE:
        return take_rate(option, value, &it->rate);
    case OPTION_SORT:
        return take_sort(option, value, &it->sort);
    case OPTION_WARM_UP:
        it->has_warm_up = true;
        return take_duration(option, value, &it->warm_up_ns);
    default:
        it->html = value;
        return EXIT_OK;
    }
}

/* Reading */

static const struct described *find_option(int value)
{
    for (size_t i = 0; i < N_ALL; i++) {
        if (all[i].option.val == value || (all[i].letter != 0 && all[i].letter == value)) {
            return &all[i];
        }
    }
    return NULL;
}

static int refuse_foreign(const struct command *command, const struct described *option)
{
    char names[100] = "";

    for (size_t i = 0; i < N_COMMANDS; i++) {
        if ((option->commands & commands[i].bit) != 0) {
            size_t len = strlen(names);
            snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                     commands[i].name);
        }
    }
    return say_failed(EXIT_USAGE, "--%s is an option of %s, not of %s", option->option.name, names,
                      command->name);
}

/* The tables of getopt_long(). */
static void make_tables(struct option *longs, char *letters)
{
    *letters++ = ':';
    for (size_t i = 0; i < N_ALL; i++) {
        longs[i] = all[i].option;
        if (all[i].letter != 0) {
            *letters++ = (char)all[i].letter;
            if (all[i].value != NULL) {
                *letters++ = ':';
            }
        }
    }
    longs[N_ALL] = (struct option){0};
    *letters = '\0';
}

static int read_all(struct options *it, const struct command *command, int argc, char **argv,
                    bool *ret_done)
{
    struct option longs[N_ALL + 1];
    char letters[2 * N_ALL + 2];
    int rc = EXIT_OK;
    int value;

    make_tables(longs, letters);
    opterr = 0;
    while (rc == EXIT_OK && (value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct described *option = find_option(value);
        if (value == '?' && optopt != 0 && find_option(optopt) == NULL) {
            /* Among letters written together, which optind is not behind yet. */
            return say_failed(EXIT_USAGE, "-%c is no option; see bowline %s --help", optopt,
                              command->name);
        }
        if (value == '?' || value == ':' || option == NULL) {
            return say_failed(EXIT_USAGE, "%s %s; see bowline %s --help", argv[optind - 1],
                              value == ':' ? "needs a value" : "is no option", command->name);
        }
        if ((option->commands & command->bit) == 0) {
            return refuse_foreign(command, option);
        }
        if (value == 'h') {
            show_help(command);
            *ret_done = true;
            return EXIT_OK;
        }
        rc = take(it, option, optarg);
    }
    for (; rc == EXIT_OK && optind < argc; optind++) {
        if (it->n_args == command->max_args) {
            return say_failed(EXIT_USAGE, "\"%s\" is more than it takes: bowline %s %s",
                              argv[optind], command->name, command->synopsis);
        }
        it->args[it->n_args++] = argv[optind];
    }
    return rc;
}

static int check_together(const struct options *it, const struct command *command)
{
    if (it->n_args < command->min_args) {
        return say_failed(EXIT_USAGE, "something is missing: bowline %s %s", command->name,
                          command->synopsis);
    }
    if (it->key != NULL && it->cert == NULL) {
        return say_failed(EXIT_USAGE, "--key is of no use without --cert");
    }
    if (it->ca != NULL && it->insecure) {
        return say_failed(EXIT_USAGE, "--ca says whom to trust, --insecure to trust anyone: take "
                                      "one of them");
    }
    if (it->server_name != NULL && !it->tls) {
        return say_failed(EXIT_USAGE, "--server-name is of no use without TLS: --tls or --ca FILE");
    }
    if (it->count != 0 && it->duration_ns != 0) {
        return say_failed(EXIT_USAGE, "take one of -n and -d: calls end by number or by time");
    }
    if (it->token_file != NULL && it->token_env != NULL) {
        return say_failed(EXIT_USAGE, "take one of --token-file and --token-env");
    }
    if (it->import_dirs.n > 0 && it->protos.n == 0) {
        return say_failed(EXIT_USAGE, "-I is of no use without --proto");
    }
    return EXIT_OK;
}

int options_read(struct options *options, int argc, char **argv, bool *ret_done)
{
    const struct command *command = NULL;

    *options = (struct options){0};
    *ret_done = true;
    if (argc < 2) {
        show_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        show_usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bowline %s\n", BOWLINE_VERSION);
        return EXIT_OK;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            command = &commands[i];
        }
    }
    if (command == NULL) {
        return say_failed(EXIT_USAGE, "there is no command \"%s\"; bowline --help lists them",
                          argv[1]);
    }
    options->command = command->bit;
    options->command_name = command->name;
    *ret_done = false;
    int rc = read_all(options, command, argc - 1, argv + 1, ret_done);
    return rc == EXIT_OK && !*ret_done ? check_together(options, command) : rc;
}
