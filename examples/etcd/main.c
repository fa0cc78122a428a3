/* SPDX-License-Identifier: 0BSD */
/* The command line: what is done once waits for its answer, watch and hold run on a loop until
 * SIGINT or SIGTERM. What changed goes to standard output, what became of connections to standard
 * error. */

#include "etcd_hold.h"
#include "etcd_kv.h"
#include "etcd_watch.h"
#include <bowline/context.h>
#include <bowline/loop.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: etcd-client [-p] [-u USER:PASSWORD] TARGET COMMAND\n"
    "  TARGET is grpc:HOST:PORT or grpc:list:HOST:PORT,HOST:PORT,...\n"
    "  -p     no TLS, also beyond this host, and for the user's token\n"
    "  -u     with the rights of USER\n"
    "commands:\n"
    "  put KEY VALUE\n"
    "  create KEY VALUE             only if there is no such key\n"
    "  replace KEY VALUE REVISION   only if it was not changed since REVISION\n"
    "  get KEY\n"
    "  delete KEY\n"
    "  range PREFIX [LIMIT]         in pages of LIMIT keys\n"
    "  compact REVISION             forget what was before\n"
    "  watch PREFIX [REVISION]      what is there and then each change, or those after REVISION\n"
    "  hold KEY VALUE SECONDS       there while this program runs, and SECONDS longer at most\n";

static void print_bytes(const ProtobufCBinaryData *bytes)
{
    for (size_t i = 0; i < bytes->len; i++) {
        uint8_t byte = bytes->data[i];
        if (byte >= ' ' && byte < 0x7f && byte != '\\') {
            putchar(byte);
        } else {
            printf("\\x%02x", byte);
        }
    }
}

/* The revision of its last change comes first. */
static void print_kv(const char *what, const Mvccpb__KeyValue *kv)
{
    printf("%" PRId64 " %s ", kv->mod_revision, what);
    print_bytes(&kv->key);
    if (kv->mod_revision != 0 && kv->version != 0) { /* of one that was deleted there is no value */
        fputs(" = ", stdout);
        print_bytes(&kv->value);
    }
    putchar('\n');
}

static const char *advice(const struct bow_status *status)
{
    switch (status->code) {
    case BOW_PERMISSION_DENIED:
        return " (may that user do this? etcdctl role grant-permission)";
    case BOW_INVALID_ARGUMENT:
        return strstr(status->message, "user name is empty") != NULL ? " (-u USER:PASSWORD)" : "";
    case BOW_OUT_OF_RANGE:
        return " (that revision is forgotten, or still to come)";
    case BOW_RESOURCE_EXHAUSTED:
        return strstr(status->message, "space") != NULL ? " (compact, then etcdctl defrag)" : "";
    default:
        return "";
    }
}

static void print_error(const struct bow_status *status)
{
    fprintf(stderr, "etcd-client: %s: %s%s\n", bow_code_name(status->code), status->message,
            advice(status));
}

/* What is done once. */

static int put(struct etcd *etcd, char **words, struct bow_result *result)
{
    const Etcdserverpb__PutResponse *reply = etcd_put(etcd, words[0], words[1], 0, result);

    if (reply != NULL && reply->header != NULL) {
        printf("%" PRId64 " put %s = %s\n", reply->header->revision, words[0], words[1]);
    }
    return reply != NULL ? 0 : 1;
}

static int put_if(struct etcd *etcd, char **words, int64_t revision, struct bow_result *result)
{
    const Etcdserverpb__TxnResponse *reply =
        etcd_put_if(etcd, words[0], words[1], revision, result);

    if (reply == NULL) {
        return 1;
    }
    if (reply->succeeded) {
        printf("%" PRId64 " put %s = %s\n", reply->header->revision, words[0], words[1]);
        return 0;
    }
    fprintf(stderr, "etcd-client: not done, for there is:\n");
    if (reply->n_responses > 0 && reply->responses[0]->response_range->n_kvs > 0) {
        print_kv("is", reply->responses[0]->response_range->kvs[0]);
    } else {
        printf("no key %s\n", words[0]);
    }
    return 1;
}

static int create(struct etcd *etcd, char **words, struct bow_result *result)
{
    return put_if(etcd, words, 0, result);
}

static int replace(struct etcd *etcd, char **words, struct bow_result *result)
{
    return put_if(etcd, words, strtoll(words[2], NULL, 10), result);
}

static int get(struct etcd *etcd, char **words, struct bow_result *result)
{
    const Etcdserverpb__RangeResponse *reply = etcd_get(etcd, words[0], result);

    if (reply != NULL && reply->n_kvs > 0) {
        print_kv("is", reply->kvs[0]);
        return 0;
    }
    if (reply != NULL) {
        fprintf(stderr, "etcd-client: there is no key %s\n", words[0]);
    }
    return 1;
}

static int delete (struct etcd *etcd, char **words, struct bow_result *result)
{
    const Etcdserverpb__DeleteRangeResponse *reply = etcd_delete(etcd, words[0], result);

    if (reply != NULL) {
        printf("%" PRId64 " deleted\n", reply->deleted);
    }
    return reply != NULL ? 0 : 1;
}

static int compact(struct etcd *etcd, char **words, struct bow_result *result)
{
    return etcd_compact(etcd, strtoll(words[0], NULL, 10), result) != NULL ? 0 : 1;
}

static void print_page(const Etcdserverpb__RangeResponse *page, void *user)
{
    (void)user;
    for (size_t i = 0; i < page->n_kvs; i++) {
        print_kv("is", page->kvs[i]);
    }
    printf("page of %zu, %" PRId64 " from here on\n", page->n_kvs, page->count);
}

static int range(struct etcd *etcd, char **words, struct bow_result *result)
{
    int64_t limit = words[1] != NULL ? strtoll(words[1], NULL, 10) : 100;

    if (etcd_range(etcd, words[0], limit, print_page, NULL, result)) {
        return 0;
    }
    if (result->status.code == BOW_OK) {
        fprintf(stderr, "etcd-client: out of memory, or a page that makes no sense\n");
    }
    return 1;
}

/* What runs until it is told to stop. */

static volatile sig_atomic_t is_told_to_stop;
static struct bow_loop *signalled_loop;

static void on_signal(int number)
{
    (void)number;
    is_told_to_stop = 1;
    bow_loop_wake(signalled_loop);
}

struct running {
    struct etcd *etcd;
    struct etcd_watch watch;
    struct etcd_hold hold;
    bool closed;
    int rc;
};

/* Drives the loop until all is closed; `stop` is called once. */
static int run_until_closed(struct running *running, void (*stop)(struct running *))
{
    struct sigaction action = {.sa_handler = on_signal};
    int rc = 0;

    signalled_loop = running->etcd->loop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (rc == 0 && !running->closed) {
        rc = bow_loop_run_once(running->etcd->loop, BOW_NEVER);
        if (is_told_to_stop && !running->closed) {
            stop(running);
        }
    }
    return rc == 0 ? running->rc : 1;
}

static void on_closed(struct running *running, const struct bow_status *status)
{
    running->closed = true;
    running->rc = is_told_to_stop ? 0 : 1;
    if (!is_told_to_stop) {
        print_error(status);
    }
}

static void on_state_begin(struct etcd_watch *watch, int64_t compact_revision, void *user)
{
    (void)watch;
    (void)user;
    if (compact_revision != 0) {
        fprintf(stderr,
                "etcd-client: changes up to revision %" PRId64
                " are forgotten (compaction), and some of them were not seen: "
                "what is not listed now was deleted\n",
                compact_revision);
    }
    printf("state\n");
}

static void on_state(struct etcd_watch *watch, const Mvccpb__KeyValue *kv, void *user)
{
    (void)watch;
    (void)user;
    print_kv("is", kv);
}

static void on_state_end(struct etcd_watch *watch, int64_t revision, void *user)
{
    (void)watch;
    (void)user;
    printf("%" PRId64 " watching\n", revision);
    fflush(stdout);
}

static void on_event(struct etcd_watch *watch, const Mvccpb__Event *event, void *user)
{
    (void)watch;
    (void)user;
    print_kv(event->type == MVCCPB__EVENT__EVENT_TYPE__PUT ? "put" : "delete", event->kv);
    fflush(stdout);
}

static void on_progress(struct etcd_watch *watch, int64_t revision, void *user)
{
    (void)watch;
    (void)user;
    printf("%" PRId64 " progress\n", revision);
    fflush(stdout);
}

static void on_watch_interrupted(struct etcd_watch *watch, const struct bow_status *why,
                                 int64_t revision, void *user)
{
    (void)watch;
    (void)user;
    fprintf(stderr, "etcd-client: watching again after revision %" PRId64 ": %s: %s\n", revision,
            bow_code_name(why->code), why->message);
}

static void on_watch_closed(struct etcd_watch *watch, const struct bow_status *status, void *user)
{
    (void)watch;
    on_closed(user, status);
}

static void stop_watch(struct running *running)
{
    etcd_watch_stop(&running->watch);
}

static int watch(struct etcd *etcd, char **words, struct bow_result *result)
{
    static const struct etcd_watch_events events = {
        .on_state_begin = on_state_begin,
        .on_state = on_state,
        .on_state_end = on_state_end,
        .on_event = on_event,
        .on_progress = on_progress,
        .on_interrupted = on_watch_interrupted,
        .on_closed = on_watch_closed,
    };
    struct running running = {.etcd = etcd};
    int64_t revision = words[1] != NULL ? strtoll(words[1], NULL, 10) : 0;

    (void)result;
    if (etcd_watch_start(&running.watch, etcd, words[0], revision, &events, &running) < 0) {
        fprintf(stderr, "etcd-client: out of memory\n");
        return 1;
    }
    return run_until_closed(&running, stop_watch);
}

static void on_held(struct etcd_hold *hold, int64_t lease, void *user)
{
    (void)user;
    printf("%s is there, lease %" PRIx64 "\n", hold->key, (uint64_t)lease);
    fflush(stdout);
}

static void on_lost(struct etcd_hold *hold, int64_t lease, const char *why, void *user)
{
    (void)user;
    printf("%s lost, lease %" PRIx64 ": %s\n", hold->key, (uint64_t)lease, why);
    fflush(stdout);
}

static void on_hold_interrupted(struct etcd_hold *hold, const struct bow_status *why, void *user)
{
    (void)hold;
    (void)user;
    fprintf(stderr, "etcd-client: trying again: %s: %s\n", bow_code_name(why->code), why->message);
}

static void on_hold_closed(struct etcd_hold *hold, const struct bow_status *status, void *user)
{
    (void)hold;
    on_closed(user, status);
}

static void stop_hold(struct running *running)
{
    etcd_hold_stop(&running->hold);
}

static int hold(struct etcd *etcd, char **words, struct bow_result *result)
{
    static const struct etcd_hold_events events = {
        .on_held = on_held,
        .on_lost = on_lost,
        .on_interrupted = on_hold_interrupted,
        .on_closed = on_hold_closed,
    };
    struct running running = {.etcd = etcd};
    int64_t ttl_s = strtoll(words[2], NULL, 10);

    (void)result;
    etcd_hold_start(&running.hold, etcd, words[0], words[1], ttl_s, &events, &running);
    return run_until_closed(&running, stop_hold);
}

static const struct command {
    const char *name;
    int n_words; /* at least */
    bool on_loop;
    int (*fn)(struct etcd *etcd, char **words, struct bow_result *result);
} commands[] = {
    {"put", 2, false, put},         {"create", 2, false, create}, {"replace", 3, false, replace},
    {"get", 1, false, get},         {"delete", 1, false, delete}, {"range", 1, false, range},
    {"compact", 1, false, compact}, {"watch", 1, true, watch},    {"hold", 3, true, hold},
};

static const struct command *find_command(int n_words, char **words)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && n_words > 0; i++) {
        if (strcmp(commands[i].name, words[0]) == 0 && n_words > commands[i].n_words) {
            return &commands[i];
        }
    }
    return NULL;
}

static int run(const struct command *command, struct etcd_options *options, char **words)
{
    struct bow_transport_error error = {.text = "out of memory or descriptors"};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct etcd etcd;
    int rc = 2;

    loop_options.thread = BOW_LOOP_OWNER;
    if ((command->on_loop && bow_loop_new(options->context, &loop_options, &options->loop) < 0) ||
        etcd_open(&etcd, options, &error) < 0) {
        fprintf(stderr, "etcd-client: %s\n", error.text);
    } else {
        rc = command->fn(&etcd, words, &result);
        if (result.status.code != BOW_OK) {
            print_error(&result.status);
        }
        bow_result_fini(&result);
        etcd_close(&etcd);
    }
    bow_loop_unref(options->loop);
    return rc;
}

int main(int argc, char **argv)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct etcd_options options = {.password = ""};
    char *colon;
    int option;

    while ((option = getopt(argc, argv, "+pu:")) != -1) {
        options.plaintext = options.plaintext || option == 'p';
        if (option == 'u') {
            options.user = optarg;
            colon = strchr(optarg, ':');
            if (colon != NULL) {
                *colon = '\0';
                options.password = colon + 1;
            }
        }
    }
    const struct command *command = find_command(argc - optind - 1, argv + optind + 1);
    if (command == NULL) {
        fputs(usage, stderr);
        return 2;
    }
    options.target = argv[optind];
    if (bow_context_new(&context_options, &options.context) < 0) {
        fprintf(stderr, "etcd-client: out of memory\n");
        return 2;
    }
    int rc = run(command, &options, argv + optind + 2);
    bow_context_unref(options.context);
    return rc;
}
