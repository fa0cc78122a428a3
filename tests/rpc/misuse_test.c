/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that handlers use after their end. Each deed is done in a process of its own, which is to
 * end there and say which method it was, or under AddressSanitizer to be reported; and in one that
 * does not end, where it is to be refused and leave others alone.
 */

#include "base/context.h"
#include "base/misuse.h"
#include "base/poison.h"
#include "protos/kinds.bow.h"

#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/executor.h>
#include <bowline/server.h>
#include <bowline/stream.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N_CALLS 20u

static bool is_grpc;

struct world;

/* What a handler does to a call that it has answered. Returns what the library said. */
typedef int (*deed_fn)(struct bow_call *call);

struct world {
    struct bow_context *context;
    struct bow_executor *executor; /* of the handlers; NULL: their loop */
    struct bow_server *server;
    struct bow_client *client;
    deed_fn deed;
    bool first_fails; /* the answer that is right */
    bool at_once;     /* else when the next call comes */
    bool elsewhere;   /* both answers on a thread that is neither */
    struct bow_call *kept;
    const Kinds__Number *kept_request;
    bool reads_old_message;
    int rc;
    atomic_int n_lines; /* of the log, that say so */
    atomic_int n_closed;
};

/* How a deed is done: the world's choices. */
struct how {
    size_t deed;
    bool aborts;
    bool on_executor;
    bool first_fails;
    bool at_once;
    bool elsewhere;
    bool pooled; /* memory is used again, as in a build for use */
};

/* Deeds */

static int reply(struct bow_call *call)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = 666;
    return bow_call_reply(call, &number.base);
}

static int fail_again(struct bow_call *call)
{
    return bow_call_fail(call, BOW_ABORTED, "for the %s time", "second");
}

static int fail_status(struct bow_call *call)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = BOW_ABORTED;
    return bow_call_fail_status(call, &status);
}

static int add_initial(struct bow_call *call)
{
    return bow_call_add_initial(call, "a-key", (struct bow_slice){(const uint8_t *)"v", 1});
}

static int add_trailing(struct bow_call *call)
{
    return bow_call_add_trailing(call, "a-key", (struct bow_slice){(const uint8_t *)"v", 1});
}

static int compress(struct bow_call *call)
{
    return bow_call_compress(call, true);
}

static int ask_memory(struct bow_call *call)
{
    return bow_call_alloc(call, 16) == NULL ? -EINVAL : 0;
}

static int ask_arena(struct bow_call *call)
{
    return bow_call_arena(call) == NULL ? -EINVAL : 0;
}

static int print(struct bow_call *call)
{
    return bow_call_printf(call, "%d", 1) == NULL ? -EINVAL : 0;
}

static int copy(struct bow_call *call)
{
    return bow_call_strdup(call, "text") == NULL ? -EINVAL : 0;
}

static int ask_metadata(struct bow_call *call)
{
    return bow_call_metadata(call)->n == 0 ? -EINVAL : 0;
}

static int finish(struct bow_call *call)
{
    return bow_call_finish(call);
}

static int send_one(struct bow_call *call)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    return bow_call_send(call, &number.base);
}

static int listen_again(struct bow_call *call)
{
    static const struct kinds__all__count__call_events events = {.on_closed = NULL};

    return bow_call_listen(call, &events, NULL);
}

static int refer(struct bow_call *call)
{
    (void)bow_call_ref(call);
    return -EINVAL;
}

static int let_go(struct bow_call *call)
{
    bow_call_unref(call);
    return -EINVAL;
}

static const struct {
    const char *name;
    deed_fn fn;
    bool of_streams;
} deeds[] = {
    {"answered again", reply, false},
    {"answered again", fail_again, false},
    {"answered again", fail_status, false},
    {"given metadata", add_initial, false},
    {"given metadata", add_trailing, false},
    {"told to compress", compress, false},
    {"asked for memory", ask_memory, false},
    {"asked for its arena", ask_arena, false},
    {"asked for memory", print, false},
    {"asked for memory", copy, false},
    {"asked for its metadata", ask_metadata, false},
    {"finished", finish, true},
    {"sent on", send_one, true},
    {"listened to", listen_again, true},
    {"referred to", refer, true},
    {"let go of", let_go, true},
};

#define N_DEEDS (sizeof(deeds) / sizeof(deeds[0]))

/* The service */

static void answer(struct world *w, struct bow_call *call, uint64_t value)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = value;
    if (w->first_fails) {
        (void)bow_call_fail(call, BOW_NOT_FOUND, "%llu", (unsigned long long)value);
    } else {
        (void)bow_call_reply(call, &number.base);
    }
}

static void *answer_twice(void *user)
{
    struct world *w = user;

    answer(w, w->kept, 1);
    w->rc = w->deed(w->kept);
    return NULL;
}

/* Each call but the first one uses the one before it, or the first one itself. */
static void ask(struct bow_call *call, const Kinds__Number *request, void *user)
{
    struct world *w = user;
    uint64_t value = request->value;
    pthread_t thread;

    if (value > 1) {
        if (value == 2 && !w->at_once) {
            w->rc = w->deed != NULL ? w->deed(w->kept) : 0;
        }
        answer(w, call, value);
        return;
    }
    w->kept = call;
    w->kept_request = request;
    if (w->elsewhere) {
        (void)!pthread_create(&thread, NULL, answer_twice, w);
        (void)pthread_join(thread, NULL);
        return;
    }
    answer(w, call, value);
    if (w->at_once) {
        w->rc = w->deed(call);
    }
}

static void on_closed(struct kinds__all__count__call call, const struct bow_status *status,
                      void *user)
{
    struct world *w = user;

    (void)call;
    (void)status;
    atomic_fetch_add(&w->n_closed, 1);
}

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    static const struct kinds__all__count__call_events events = {.on_closed = on_closed};
    struct world *w = user;

    (void)request;
    w->kept = call.call;
    (void)kinds__all__count__listen(call, &events, w);
    (void)bow_call_finish(call.call);
}

static void on_message(struct kinds__all__double__call call, const Kinds__Number *message,
                       void *user)
{
    struct world *w = user;

    w->kept_request = message;
    (void)!bow_call_send(call.call, &message->base);
}

static void on_half_close(struct kinds__all__double__call call, void *user)
{
    struct world *w = user;

    if (w->reads_old_message) {
        w->rc = (int)w->kept_request->value;
    }
    (void)bow_call_finish(call.call);
}

static void repeat(struct kinds__all__double__call call, void *user)
{
    static const struct kinds__all__double__call_events events = {
        .on_message = on_message,
        .on_half_close = on_half_close,
    };

    (void)kinds__all__double__listen(call, &events, user);
}

/* The world of a child */

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);          \
            _exit(3);                                                                              \
        }                                                                                          \
    } while (0)

static void on_log(enum bow_log_level level, const char *line, void *user)
{
    struct world *w = user;

    if (level == BOW_LOG_ERROR && strstr(line, "misuse: a call of /kinds.All/") != NULL) {
        atomic_fetch_add(&w->n_lines, 1);
    }
}

static void begin(struct world *w, const struct how *how)
{
    const struct kinds__all__handlers handlers = {.ask = ask, .count = count, .double_ = repeat};
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options server_options = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client_options = BOW_CLIENT_OPTIONS_INIT;

    context_options.log = on_log;
    context_options.log_user = w;
    EXPECT(bow_context_new(&context_options, &w->context) == 0);
    bow__look_for_misuse(w->context);
    w->context->aborts_on_misuse = how->aborts;
    w->context->quarantines = !how->pooled;
    if (how->on_executor) {
        EXPECT(bow_executor_new(w->context, NULL, &w->executor) == 0);
    }
    server_options.context = w->context;
    server_options.listen = "inproc:misuse";
    server_options.handlers_on = w->executor;
    server_options.workers = 1;
    EXPECT(bow_server_new(&server_options, &w->server) == 0);
    EXPECT(kinds__all__serve(w->server, &handlers, w) == 0);
    EXPECT(bow_server_start(w->server) == 0);
    client_options.context = w->context;
    client_options.target = is_grpc ? "grpc:inproc:misuse" : "inproc:misuse";
    EXPECT(bow_client_new(&client_options, &w->client) == 0);
}

static void end(struct world *w)
{
    bow_client_free(w->client);
    bow_server_free(w->server);
    if (w->executor != NULL) {
        EXPECT(bow_executor_shutdown(w->executor, 0, 0) == 0);
        EXPECT(bow_executor_join(w->executor, BOW_NEVER) == 0);
        bow_executor_unref(w->executor);
    }
    EXPECT(bow_context_bytes(w->context) == 0);
    bow_context_unref(w->context);
}

static void call(struct world *w, uint64_t value)
{
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = value;
    const Kinds__Number *answered = kinds__all__ask__call(w->client, &number, NULL, &result);
    if (w->first_fails) {
        EXPECT(result.status.code == BOW_NOT_FOUND);
        EXPECT(strtoull(result.status.message, NULL, 10) == value);
    } else {
        EXPECT(result.status.code == BOW_OK);
        EXPECT(answered->value == value);
    }
    bow_result_fini(&result);
}

/* on_closed is the last event, so the next call finds the stream gone. */
static void stream(struct world *w)
{
    struct kinds__all__count__stream opened;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number number = KINDS__NUMBER__INIT;

    EXPECT(kinds__all__count__open(w->client, &number, NULL, NULL, NULL, &opened) == 0);
    EXPECT(bow_stream_finish(opened.stream, &result) == 0);
    EXPECT(result.status.code == BOW_OK);
    bow_result_fini(&result);
}

static void run_calls(struct world *w)
{
    for (uint64_t i = 1; i <= N_CALLS; i++) {
        call(w, i);
    }
}

/* Children */

struct ending {
    int status;
    char said[65536];
};

static void run_child(void (*run)(void *user), void *user, struct ending *ret_ending)
{
    const struct rlimit no_core = {0, 0};
    int fds[2];
    size_t n = 0;
    ssize_t n_read = 0;

    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        run(user);
        _exit(0);
    }
    (void)close(fds[1]);
    while ((n_read = read(fds[0], ret_ending->said + n, sizeof(ret_ending->said) - 1 - n)) > 0) {
        n += (size_t)n_read;
    }
    ret_ending->said[n] = '\0';
    (void)close(fds[0]);
    assert_int_equal(waitpid(pid, &ret_ending->status, 0), pid);
}

static void expect_said(const struct ending *ending, const char *words, size_t i)
{
    if (strstr(ending->said, words) == NULL) {
        fail_msg("deed %zu: \"%s\" is not in: %s", i, words, ending->said);
    }
}

static void expect_aborted(const struct ending *ending, const char *method, size_t i)
{
    char words[128];

    snprintf(words, sizeof(words), "misuse: a call of %s was %s after its end", method,
             deeds[i].name);
    expect_said(ending, words, i);
    assert_true(WIFSIGNALED(ending->status));
    assert_int_equal(WTERMSIG(ending->status), SIGABRT);
}

static void expect_well(const struct ending *ending, size_t i)
{
    if (!WIFEXITED(ending->status) || WEXITSTATUS(ending->status) != 0) {
        fail_msg("deed %zu: status %x: %s", i, (unsigned)ending->status, ending->said);
    }
}

static void do_unary(void *user)
{
    const struct how *how = user;
    struct world w = {
        .deed = deeds[how->deed].fn,
        .first_fails = how->first_fails,
        .at_once = how->at_once,
        .elsewhere = how->elsewhere,
    };

    begin(&w, how);
    run_calls(&w);
    end(&w);
    EXPECT(w.rc == -EINVAL);
    EXPECT(atomic_load(&w.n_lines) == 1);
}

static void each_unary(struct how how, bool answers_only)
{
    static struct ending ending;

    for (how.deed = 0; how.deed < N_DEEDS && !deeds[how.deed].of_streams; how.deed++) {
        if (answers_only && strcmp(deeds[how.deed].name, "answered again") != 0) {
            continue;
        }
        run_child(do_unary, &how, &ending);
        if (how.aborts) {
            expect_aborted(&ending, "/kinds.All/Ask", how.deed);
        } else {
            expect_well(&ending, how.deed);
        }
    }
}

static void test_misuse_f62_call_used_in_its_handler_after_the_reply_aborts(void **state)
{
    (void)state;
    each_unary((struct how){.aborts = true, .at_once = true}, false);
}

static void test_misuse_f62_call_used_in_its_handler_after_it_failed_aborts(void **state)
{
    (void)state;
    each_unary((struct how){.aborts = true, .at_once = true, .first_fails = true}, false);
}

static void test_misuse_f62_call_used_by_the_next_handler_aborts(void **state)
{
    (void)state;
    each_unary((struct how){.aborts = true}, false);
    each_unary((struct how){.aborts = true, .on_executor = true}, false);
}

/* Before the loop has sent the first one, or after it. */
static void test_misuse_f62_second_answer_off_the_loop_aborts(void **state)
{
    (void)state;
    each_unary((struct how){.aborts = true, .elsewhere = true, .at_once = true}, true);
    each_unary((struct how){.aborts = true, .on_executor = true, .at_once = true}, true);
}

static void test_misuse_f62_without_an_abort_it_is_refused_and_logged(void **state)
{
    (void)state;
    each_unary((struct how){.at_once = true}, false);
    each_unary((struct how){.at_once = true, .first_fails = true}, false);
    each_unary((struct how){.at_once = false}, false);
    each_unary((struct how){.at_once = true, .elsewhere = true}, true);
    each_unary((struct how){.at_once = false, .on_executor = true}, false);
}

/* Memory that no other call has had since. AddressSanitizer has it freed instead. */
static void test_misuse_f62_pooled_call_used_at_once_is_refused(void **state)
{
    (void)state;
    if (!BOW__POISONS) {
        each_unary((struct how){.pooled = true, .at_once = true}, false);
        each_unary((struct how){.pooled = true, .at_once = true, .first_fails = true}, false);
        each_unary((struct how){.pooled = true, .at_once = true, .elsewhere = true}, true);
    }
}

/* Streams: gone with their last reference */

static void do_stream(void *user)
{
    const struct how *how = user;
    struct world w = {.deed = deeds[how->deed].fn};

    begin(&w, how);
    stream(&w);
    while (atomic_load(&w.n_closed) == 0) {
        call(&w, 3);
    }
    call(&w, 3); /* on_closed has returned */
    call(&w, 3);
    call(&w, 2);
    EXPECT(w.rc == -EINVAL);
    EXPECT(atomic_load(&w.n_lines) == 1);
    run_calls(&w);
    end(&w);
}

static void each_stream(bool aborts)
{
    static struct ending ending;
    struct how how = {.aborts = aborts};

    for (; how.deed < N_DEEDS; how.deed++) {
        run_child(do_stream, &how, &ending);
        if (aborts) {
            expect_aborted(&ending, "/kinds.All/Count", how.deed);
        } else {
            expect_well(&ending, how.deed);
        }
    }
}

static void test_misuse_f62_stream_used_after_its_last_reference_aborts(void **state)
{
    (void)state;
    each_stream(true);
}

static void test_misuse_f62_stream_used_after_its_last_reference_is_refused(void **state)
{
    (void)state;
    each_stream(false);
}

/* Requests */

static int read_request_of(struct world *w)
{
    uint64_t gone = 0;

    memset(&gone, BOW__GONE_BYTE, sizeof(gone));
    return w->kept_request->value == gone ? -EINVAL : 0;
}

static struct world *reader;

static int read_request(struct bow_call *call)
{
    (void)call;
    return read_request_of(reader);
}

static void do_read(void *user)
{
    const struct how *how = user;
    struct world w = {.deed = read_request, .at_once = how->at_once};

    reader = &w;
    begin(&w, how);
    run_calls(&w);
    EXPECT(w.rc == -EINVAL);
    end(&w);
}

static void expect_read_seen(struct how how)
{
    static struct ending ending;

    run_child(do_read, &how, &ending);
    if (!BOW__POISONS) {
        expect_well(&ending, 0);
        return;
    }
    expect_said(&ending, "AddressSanitizer", 0);
    expect_said(&ending, "read_request_of", 0);
    assert_false(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0);
}

/* Under AddressSanitizer at the line; elsewhere its bytes are no request's any more. */
static void test_misuse_f62_request_read_after_the_reply_is_seen(void **state)
{
    (void)state;
    expect_read_seen((struct how){.aborts = true, .at_once = true});
    expect_read_seen((struct how){.aborts = true, .at_once = false});
    expect_read_seen((struct how){.aborts = true, .at_once = false, .on_executor = true});
}

/* What a client was lent, and what it has let go of: AddressSanitizer reports who reads it */

static uint64_t read_number(const Kinds__Number *number)
{
    return number->value;
}

static void use_finished_result(struct world *w)
{
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = 1;
    const Kinds__Number *answered = kinds__all__ask__call(w->client, &number, NULL, &result);
    bow_result_fini(&result);
    EXPECT(read_number(answered) == 1);
}

static void on_done(struct bow_result *result, const Kinds__Number *reply, void *user)
{
    struct world *w = user;

    (void)result;
    w->kept_request = reply;
}

static void use_reply_after_its_callback(struct world *w)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = 1;
    EXPECT(kinds__all__ask__start(w->client, &number, NULL, on_done, w, NULL) == 0);
    w->kept_request = NULL;
    for (uint64_t value = 3; w->kept_request == NULL; value++) {
        call(w, value);
    }
    EXPECT(read_number(w->kept_request) == 1);
}

static void open_double(struct world *w, struct kinds__all__double__stream *ret_opened)
{
    EXPECT(kinds__all__double__open(w->client, NULL, NULL, NULL, ret_opened) == 0);
}

static void use_message_after_the_next(struct world *w)
{
    const ProtobufCMessage *first = NULL;
    const ProtobufCMessage *second = NULL;
    struct kinds__all__double__stream opened;
    Kinds__Number number = KINDS__NUMBER__INIT;

    open_double(w, &opened);
    EXPECT(bow_stream_write(opened.stream, &number.base, BOW_NEVER) == 0);
    EXPECT(bow_stream_receive(opened.stream, BOW_NEVER, &first) == 1);
    EXPECT(bow_stream_half_close(opened.stream) == 0);
    EXPECT(bow_stream_receive(opened.stream, BOW_NEVER, &second) == 0);
    EXPECT(read_number((const Kinds__Number *)(const void *)first) == 0);
}

static void use_finished_stream(struct world *w)
{
    struct kinds__all__double__stream opened;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number number = KINDS__NUMBER__INIT;

    open_double(w, &opened);
    EXPECT(bow_stream_finish(opened.stream, &result) == 0);
    bow_result_fini(&result);
    (void)!bow_stream_send(opened.stream, &number.base);
}

static void use_payload_after_unref(struct world *w)
{
    struct bow_payload *payload = NULL;
    Kinds__Number number = KINDS__NUMBER__INIT;
    struct kinds__all__double__stream opened;

    open_double(w, &opened);
    EXPECT(bow_payload_new(w->context, &number.base, &payload) == 0);
    bow_payload_unref(payload);
    (void)!bow_stream_send_payload(opened.stream, payload);
}

/* The handler of Double keeps a message, and reads it when the client has ended its side. */
static void use_message_after_its_event(struct world *w)
{
    struct kinds__all__double__stream opened;
    Kinds__Number number = KINDS__NUMBER__INIT;
    const ProtobufCMessage *message = NULL;

    w->reads_old_message = true;
    open_double(w, &opened);
    EXPECT(bow_stream_write(opened.stream, &number.base, BOW_NEVER) == 0);
    EXPECT(bow_stream_half_close(opened.stream) == 0);
    EXPECT(bow_stream_receive(opened.stream, BOW_NEVER, &message) == 1);
    EXPECT(bow_stream_receive(opened.stream, BOW_NEVER, &message) == 0);
}

static void do_lent(void *user)
{
    void (*const *use)(struct world *) = user;
    const struct how how = {.aborts = true};
    struct world w = {.first_fails = false};

    begin(&w, &how);
    (*use)(&w);
}

static void test_misuse_f62_what_was_lent_is_poisoned_afterwards(void **state)
{
    static void (*const uses[])(struct world *) = {
        use_finished_result, use_reply_after_its_callback, use_message_after_the_next,
        use_finished_stream, use_payload_after_unref,      use_message_after_its_event,
    };
    static struct ending ending;

    (void)state;
    for (size_t i = 0; BOW__POISONS && i < sizeof(uses) / sizeof(uses[0]); i++) {
        void (*use)(struct world *) = uses[i];
        run_child(do_lent, &use, &ending);
        expect_said(&ending, "AddressSanitizer", i);
        expect_said(&ending, "misuse_test", i);
        assert_false(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0);
    }
}

/* What is right is left alone */

static void do_well(void *user)
{
    const struct how *how = user;
    struct world w = {.first_fails = how->first_fails};

    begin(&w, how);
    for (unsigned i = 0; i < 2 * BOW__QUARANTINED_CALLS; i++) {
        stream(&w);
        call(&w, 1);
    }
    EXPECT(atomic_load(&w.n_lines) == 0);
    end(&w);
}

static void test_misuse_f62_calls_in_order_are_left_alone(void **state)
{
    static struct ending ending;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct how how = {.aborts = true, .on_executor = (i & 1) != 0, .first_fails = (i & 2) != 0};
        run_child(do_well, &how, &ending);
        expect_well(&ending, i);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse_f62_call_used_in_its_handler_after_the_reply_aborts),
        cmocka_unit_test(test_misuse_f62_call_used_in_its_handler_after_it_failed_aborts),
        cmocka_unit_test(test_misuse_f62_call_used_by_the_next_handler_aborts),
        cmocka_unit_test(test_misuse_f62_second_answer_off_the_loop_aborts),
        cmocka_unit_test(test_misuse_f62_without_an_abort_it_is_refused_and_logged),
        cmocka_unit_test(test_misuse_f62_pooled_call_used_at_once_is_refused),
        cmocka_unit_test(test_misuse_f62_stream_used_after_its_last_reference_aborts),
        cmocka_unit_test(test_misuse_f62_stream_used_after_its_last_reference_is_refused),
        cmocka_unit_test(test_misuse_f62_request_read_after_the_reply_is_seen),
        cmocka_unit_test(test_misuse_f62_what_was_lent_is_poisoned_afterwards),
        cmocka_unit_test(test_misuse_f62_calls_in_order_are_left_alone),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
