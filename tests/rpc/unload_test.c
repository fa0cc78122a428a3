/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The shared library as a plug-in loads it: two contexts at once, each with a server that runs on
 * a thread; then all is ended, the library leaves the process, and comes again. With a PLUGIN that
 * links it, each kind of loop in turn: a thread that is still in our code would crash.
 *
 *     unload_test LIBRARY [PLUGIN]
 */

#include "tests/support/sanitized.h"
#include "unload_plugin.h"

#include <bowline/channel.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <bowline/system.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_ROUNDS 3

static const char *path;

struct library {
    void *handle;
    int (*context_new)(const struct bow_context_options *options, struct bow_context **ret_context);
    struct bow_context *(*context_unref)(struct bow_context *context);
    size_t (*context_bytes)(const struct bow_context *context);
    int (*server_new)(const struct bow_server_options *options, struct bow_server **ret_server);
    int (*server_start)(struct bow_server *server);
    void (*server_free)(struct bow_server *server);
};

static void find(struct library *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library->handle, name);

    assert_non_null(symbol);
    memcpy(ret_function, &symbol, sizeof(symbol));
}

static void load(struct library *library)
{
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        fail_msg("%s", dlerror());
    }
    find(library, "bow_context_new", &library->context_new);
    find(library, "bow_context_unref", &library->context_unref);
    find(library, "bow_context_bytes", &library->context_bytes);
    find(library, "bow_server_new", &library->server_new);
    find(library, "bow_server_start", &library->server_start);
    find(library, "bow_server_free", &library->server_free);
}

static bool is_loaded(void)
{
    char line[1024];
    bool is_there = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        is_there = is_there || strstr(line, "libbowline.so") != NULL;
    }
    fclose(maps);
    return is_there;
}

static struct bow_server *serve(struct library *library, struct bow_context **ret_context)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    assert_int_equal(library->context_new(&context_options, ret_context), 0);
    options.context = *ret_context;
    options.listen = "inproc:unload"; /* the same name in each context */
    assert_int_equal(library->server_new(&options, &server), 0);
    assert_int_equal(library->server_start(server), 0);
    return server;
}

static void end(struct library *library, struct bow_server *server, struct bow_context *context)
{
    library->server_free(server);
    assert_int_equal(library->context_bytes(context), 0);
    library->context_unref(context);
}

static void test_unload_leaves_nothing_and_load_works_again(void **state)
{
    (void)state;
    for (int round = 0; round < N_ROUNDS; round++) {
        struct library library;
        struct bow_context *contexts[2];
        assert_false(is_loaded());
        load(&library);
        struct bow_server *first = serve(&library, &contexts[0]);
        struct bow_server *second = serve(&library, &contexts[1]);
        assert_true(is_loaded());
        end(&library, first, contexts[0]);
        end(&library, second, contexts[1]);
        assert_int_equal(dlclose(library.handle), 0);
        assert_false(is_loaded());
    }
}

static const char *plugin;

static void serve_in_plugin(enum unload_binding binding)
{
    int (*run)(enum unload_binding binding) = NULL;
    void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL) {
        fail_msg("%s", dlerror());
    }
    void *symbol = dlsym(handle, "unload_serve");
    assert_non_null(symbol);
    memcpy(&run, &symbol, sizeof(run));
    int rc = run(binding);
    assert_int_equal(dlclose(handle), 0);
    if (rc != 0) {
        fail_msg("binding %d: %d", (int)binding, rc);
    }
    assert_false(is_loaded());
}

static void test_unload_f57_plugin_that_has_ended_leaves_no_thread(void **state)
{
    enum { ROUNDS = TEST_IS_SANITIZED ? 10 : 60 };
    (void)state;

    for (int i = 0; plugin != NULL && i < ROUNDS * UNLOAD_N_BINDINGS; i++) {
        serve_in_plugin((enum unload_binding)(i % UNLOAD_N_BINDINGS));
    }
}

/* A name that is looked up for ever */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_inside;

static int resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason)
{
    (void)user;
    (void)host;
    (void)port;
    (void)addresses;
    (void)max;
    atomic_fetch_add(&n_inside, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    *ret_reason = "given up";
    return -EAGAIN;
}

static void on_connect(struct bow_channel *channel, const struct bow_transport_error *error,
                       void *user)
{
    assert_null(channel);
    assert_int_equal(error->error, -ESHUTDOWN);
    (*(int *)user)++;
}

struct transport {
    const struct bow_system *(*system_default)(void);
    int (*loop_new)(struct bow_context *context, const struct bow_loop_options *options,
                    struct bow_loop **ret_loop);
    struct bow_loop *(*loop_unref)(struct bow_loop *loop);
    int (*loop_run_once)(struct bow_loop *loop, uint64_t timeout_ns);
    int (*connect_start)(struct bow_loop *loop, const char *target,
                         const struct bow_channel_options *options, uint64_t timeout_ns,
                         bow_connect_fn done, void *user, struct bow_connect **ret_connect,
                         struct bow_transport_error *ret_error);
};

static void find_transport(struct library *library, struct transport *transport)
{
    find(library, "bow_system_default", &transport->system_default);
    find(library, "bow_loop_new", &transport->loop_new);
    find(library, "bow_loop_unref", &transport->loop_unref);
    find(library, "bow_loop_run_once", &transport->loop_run_once);
    find(library, "bow_connect_start", &transport->connect_start);
}

/* Look a name up in a context that ends meanwhile. */
static void leave_a_lookup(struct library *library, const struct bow_system *system)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_loop *loop = NULL;
    struct transport transport;
    int n_done = 0;

    find_transport(library, &transport);
    context_options.system = system;
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(library->context_new(&context_options, &context), 0);
    assert_int_equal(transport.loop_new(context, &loop_options, &loop), 0);
    assert_int_equal(transport.connect_start(loop, "slow.test:1", &options, BOW_NEVER, on_connect,
                                             &n_done, NULL, NULL),
                     0);
    while (atomic_load(&n_inside) == 0) {
        assert_int_equal(transport.loop_run_once(loop, 1000000), 0);
    }
    transport.loop_unref(loop);
    assert_int_equal(n_done, 1);
    library->context_unref(context);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    assert_non_null(tasks);
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        n += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return n;
}

/* Its thread comes back to code that is still there. It stays from now on: the last test. */
static void test_unload_f50_code_stays_for_a_lookup_that_nobody_waits_for(void **state)
{
    static struct bow_system system;
    struct library library;
    struct transport transport;
    (void)state;

    int n_threads = count_threads();
    load(&library);
    find_transport(&library, &transport);
    system = *transport.system_default();
    system.resolve = resolve;
    pthread_mutex_lock(&gate);
    leave_a_lookup(&library, &system);
    assert_int_equal(dlclose(library.handle), 0);
    assert_true(is_loaded());
    pthread_mutex_unlock(&gate);
    while (count_threads() > n_threads) {
        sched_yield();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unload_leaves_nothing_and_load_works_again),
        cmocka_unit_test(test_unload_f57_plugin_that_has_ended_leaves_no_thread),
        cmocka_unit_test(test_unload_f50_code_stays_for_a_lookup_that_nobody_waits_for),
    };

    assert_true(argc > 1);
    path = argv[1];
    plugin = argc > 2 ? argv[2] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
