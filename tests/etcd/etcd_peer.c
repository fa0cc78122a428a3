/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A program of libbowline-etcd that tells all it hears, a line each, until it is terminated:
 *
 *     etcd_peer TARGET naming|go-zero [-u USER:PASSWORD] register SERVICE ADDRESS TTL
 *     etcd_peer TARGET naming|go-zero [-u USER:PASSWORD] watch SERVICE
 *     etcd_peer TARGET naming|go-zero [-u USER:PASSWORD] lock NAME TTL
 */

#include <bowline/etcd.h>

#include <bowline/context.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_registered(struct bow_etcd_registration *registration, int64_t lease, void *user)
{
    (void)registration;
    (void)user;
    printf("registered %" PRIx64 "\n", (uint64_t)lease);
}

static void on_lost(struct bow_etcd_registration *registration, const char *why, void *user)
{
    (void)registration;
    (void)user;
    printf("lost: %s\n", why);
}

static void on_error(struct bow_etcd_registration *registration, const struct bow_status *status,
                     void *user)
{
    (void)registration;
    (void)user;
    printf("error: %s: %s\n", bow_code_name(status->code), status->message);
}

static void on_update(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                      void *user)
{
    (void)watch;
    (void)user;
    printf("servers");
    for (size_t i = 0; i < update->n_servers; i++) {
        printf(" %s*%u", update->servers[i].address, update->servers[i].weight);
    }
    printf("%s%s\n", update->error != NULL ? " error: " : "",
           update->error != NULL ? update->error : "");
}

static void on_acquired(struct bow_etcd_lock *lock, int64_t token, void *user)
{
    (void)lock;
    (void)user;
    printf("acquired %" PRId64 "\n", token);
}

static void on_lock_lost(struct bow_etcd_lock *lock, const char *why, void *user)
{
    (void)lock;
    (void)user;
    printf("lost: %s\n", why);
}

static const struct bow_etcd_registration_events registration_events = {
    .on_registered = on_registered, .on_lost = on_lost, .on_error = on_error};
static const struct bow_etcd_watch_events watch_events = {.on_update = on_update};
static const struct bow_etcd_lock_events lock_events = {.on_acquired = on_acquired,
                                                        .on_lost = on_lock_lost};

static void wait_for_the_end(void)
{
    sigset_t signals;
    int number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    (void)sigwait(&signals, &number);
}

static int register_it(struct bow_etcd *etcd, char **words)
{
    struct bow_etcd_registration_options options = BOW_ETCD_REGISTRATION_OPTIONS_INIT;
    struct bow_etcd_registration *registration;

    options.service = words[0];
    options.address = words[1];
    options.ttl_s = (uint32_t)strtoul(words[2], NULL, 10);
    options.events = &registration_events;
    int rc = bow_etcd_register(etcd, &options, &registration);
    if (rc == 0) {
        wait_for_the_end();
        bow_etcd_unregister(registration);
    }
    return rc;
}

static int watch_it(struct bow_etcd *etcd, char **words)
{
    struct bow_etcd_watch *watch;

    int rc = bow_etcd_watch(etcd, words[0], &watch_events, NULL, &watch);
    if (rc == 0) {
        wait_for_the_end();
        bow_etcd_unwatch(watch);
    }
    return rc;
}

static int lock_it(struct bow_etcd *etcd, char **words)
{
    struct bow_etcd_lock_options options = BOW_ETCD_LOCK_OPTIONS_INIT;
    struct bow_etcd_lock *lock;

    options.name = words[0];
    options.ttl_s = (uint32_t)strtoul(words[1], NULL, 10);
    options.value = "bowline";
    options.events = &lock_events;
    int rc = bow_etcd_lock(etcd, &options, &lock);
    if (rc == 0) {
        wait_for_the_end();
        bow_etcd_unlock(lock);
    }
    return rc;
}

static int do_it(struct bow_etcd *etcd, int n_words, char **words)
{
    if (n_words == 4 && strcmp(words[0], "register") == 0) {
        return register_it(etcd, words + 1);
    }
    if (n_words == 2 && strcmp(words[0], "watch") == 0) {
        return watch_it(etcd, words + 1);
    }
    if (n_words == 3 && strcmp(words[0], "lock") == 0) {
        return lock_it(etcd, words + 1);
    }
    (void)fprintf(stderr, "see the top of etcd_peer.c\n");
    return -1;
}

int main(int argc, char **argv)
{
    struct bow_etcd_options options = BOW_ETCD_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_context *context;
    struct bow_etcd *etcd;
    sigset_t signals;
    int first = 3;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL); /* in all threads */
    if (argc < 5 || bow_context_new(NULL, &context) < 0) {
        return 2;
    }
    options.context = context;
    options.target = argv[1];
    options.layout =
        strcmp(argv[2], "go-zero") == 0 ? BOW_ETCD_LAYOUT_GO_ZERO : BOW_ETCD_LAYOUT_NAMING;
    options.error = &error;
    if (strcmp(argv[3], "-u") == 0) {
        char *colon = strchr(argv[4], ':');
        *colon = '\0';
        options.user = argv[4];
        options.password = colon + 1;
        options.plaintext = true;
        first = 5;
    }
    if (bow_etcd_new(&options, &etcd) < 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int rc = do_it(etcd, argc - first, argv + first);
    if (bow_etcd_stop(etcd, UINT64_C(5000000000)) < 0) {
        printf("etcd was not told\n");
    }
    bow_etcd_unref(etcd);
    bow_context_unref(context);
    return rc == 0 ? 0 : 1;
}
