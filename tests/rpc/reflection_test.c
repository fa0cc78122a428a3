/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * grpc.reflection.v1.ServerReflection of a server, called with a copy of its .proto that is the
 * program's own: what tools need to list, describe and call services that they know nothing of.
 */

#include "call_fixture.h"
#include "grpc/reflection/v1/reflection.bow.h"
#include "rpc/services/reflection.h"
#include "shown.bow.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_NS (UINT64_C(20000) * MS)
#define ALPHA "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
#define N_ASKED 20000

#define REQUEST_INIT GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT
#define CASE(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define ANSWER(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

typedef struct grpc__reflection__v1__server_reflection__server_reflection_info__stream asking;
typedef Grpc__Reflection__V1__ServerReflectionRequest request_type;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_type;

static const struct shown__show__handlers no_handlers = {.first = NULL};

static void start_with_service(struct calls *t, bool reflection, const struct bow_service *service)
{
    struct bow_server_options options;
    struct bow_client_options client_options;

    calls_server_options(t, &options);
    options.reflection = reflection;
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_add_service(t->server, service, &no_handlers, sizeof(no_handlers),
                                            service->hash, NULL),
                     0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
}

static void start_with(struct calls *t, bool reflection)
{
    start_with_service(t, reflection, &shown__show__service);
}

static asking ask(struct calls *t)
{
    asking made = {NULL};

    assert_int_equal(grpc__reflection__v1__server_reflection__server_reflection_info__open(
                         t->client, NULL, NULL, NULL, &made),
                     0);
    return made;
}

static void send_request(asking made, const request_type *request)
{
    assert_int_equal(bow_stream_write(made.stream, &request->base, WAIT_NS), 0);
}

static const response_type *receive(asking made)
{
    const ProtobufCMessage *message = NULL;

    assert_int_equal(bow_stream_receive(made.stream, WAIT_NS, &message), 1);
    return (const response_type *)message;
}

static const response_type *ask_symbol(asking made, const char *name)
{
    request_type request = REQUEST_INIT;

    request.message_request_case = CASE(FILE_CONTAINING_SYMBOL);
    request.file_containing_symbol = (char *)(uintptr_t)name;
    send_request(made, &request);
    return receive(made);
}

static const response_type *ask_file(asking made, const char *name)
{
    request_type request = REQUEST_INIT;

    request.message_request_case = CASE(FILE_BY_FILENAME);
    request.file_by_filename = (char *)(uintptr_t)name;
    send_request(made, &request);
    return receive(made);
}

static void end(asking made)
{
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(bow_stream_finish(made.stream, &result), 0);
    if (result.status.code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

/* The name is a descriptor's first field. */
static bool is_file(const ProtobufCBinaryData *bytes, const char *name)
{
    size_t n = strlen(name);

    return bytes->len > n + 2 && bytes->data[0] == 10 && bytes->data[1] == n &&
           memcmp(bytes->data + 2, name, n) == 0;
}

static bool says(const ProtobufCBinaryData *bytes, const char *words)
{
    return memmem(bytes->data, bytes->len, words, strlen(words)) != NULL;
}

static void expect_files(const response_type *response, const char *first, const char *second)
{
    if (response->message_response_case == ANSWER(ERROR_RESPONSE)) {
        fail_msg("%s", response->error_response->error_message);
    }
    assert_int_equal(response->message_response_case, ANSWER(FILE_DESCRIPTOR_RESPONSE));
    const Grpc__Reflection__V1__FileDescriptorResponse *files = response->file_descriptor_response;
    assert_int_equal(files->n_file_descriptor_proto, second != NULL ? 2 : 1);
    assert_true(is_file(&files->file_descriptor_proto[0], first));
    if (second != NULL) {
        assert_true(is_file(&files->file_descriptor_proto[1], second));
    }
}

static void expect_error(const response_type *response, enum bow_code code, const char *words)
{
    assert_int_equal(response->message_response_case, ANSWER(ERROR_RESPONSE));
    assert_int_equal(response->error_response->error_code, code);
    if (strstr(response->error_response->error_message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", response->error_response->error_message, words);
    }
}

/* What it shows */

static void expect_listed(const response_type *response)
{
    const char *const names[] = {
        "calls.Echo",
        "shown.Show",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    };
    const size_t n_names = sizeof(names) / sizeof(names[0]);

    assert_int_equal(response->message_response_case, ANSWER(LIST_SERVICES_RESPONSE));
    const Grpc__Reflection__V1__ListServiceResponse *listed = response->list_services_response;
    assert_int_equal(listed->n_service, n_names);
    for (size_t i = 0; i < n_names; i++) {
        bool found = false;
        for (size_t k = 0; k < listed->n_service; k++) {
            found |= strcmp(listed->service[k]->name, names[i]) == 0;
        }
        assert_true(found);
    }
}

static void test_reflection_lists_all_services(void **state)
{
    request_type request = REQUEST_INIT;
    struct calls *t = *state;

    start_with(t, true);
    asking made = ask(t);
    request.host = (char *)(uintptr_t) "a.host";
    request.message_request_case = CASE(LIST_SERVICES);
    request.list_services = (char *)(uintptr_t) "*";
    send_request(made, &request);
    const response_type *response = receive(made);
    expect_listed(response);
    assert_string_equal(response->valid_host, "a.host");
    assert_int_equal(response->original_request->message_request_case, CASE(LIST_SERVICES));
    end(made);
}

static void test_reflection_finds_the_file_of_whatever_is_declared(void **state)
{
    const char *const symbols[] = {
        "shown.Show",
        "shown.Show.One",
        "shown.Outer",
        "shown.Outer.Inner",
        "shown.Outer.Inner.part",
        "shown.Outer.Kind",
        "shown.Outer.KIND_FANCY",
        "shown.Outer.choice",
        "shown.note",
    };
    struct calls *t = *state;

    start_with(t, true);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        asking made = ask(t);
        expect_files(ask_symbol(made, symbols[i]), "shown.proto", "shown_part.proto");
        end(made);
    }
    asking made = ask(t);
    expect_files(ask_symbol(made, "shown.Part"), "shown_part.proto", NULL);
    expect_files(ask_symbol(made, "grpc.health.v1.Health"), "grpc/health/v1/health.proto", NULL);
    expect_files(ask_symbol(made, "grpc.reflection.v1alpha.ServerReflection"),
                 "grpc/reflection/v1alpha/reflection.proto", NULL);
    end(made);
}

static void test_reflection_sends_an_import_once_and_what_is_asked_for_always(void **state)
{
    struct calls *t = *state;

    start_with(t, true);
    asking made = ask(t);
    expect_files(ask_file(made, "shown.proto"), "shown.proto", "shown_part.proto");
    expect_files(ask_file(made, "shown.proto"), "shown.proto", NULL);
    expect_files(ask_file(made, "shown_part.proto"), "shown_part.proto", NULL);
    end(made);
}

/* Clients build what they are shown, and cannot without each import. */
static void test_reflection_leaves_out_imports_that_only_options_need(void **state)
{
    struct calls *t = *state;

    start_with(t, true);
    asking made = ask(t);
    const response_type *response = ask_file(made, "shown.proto");
    expect_files(response, "shown.proto", "shown_part.proto");
    const ProtobufCBinaryData *shown =
        &response->file_descriptor_response->file_descriptor_proto[0];
    assert_false(says(shown, "bowline/options.proto"));
    assert_true(says(shown, "shown_part.proto"));
    response = ask_file(made, "grpc/health/v1/health.proto");
    assert_false(
        says(&response->file_descriptor_response->file_descriptor_proto[0], "protobuf-c.proto"));
    end(made);
}

static void test_reflection_finds_extensions(void **state)
{
    Grpc__Reflection__V1__ExtensionRequest extension =
        GRPC__REFLECTION__V1__EXTENSION_REQUEST__INIT;
    request_type request = REQUEST_INIT;
    struct calls *t = *state;

    start_with(t, true);
    asking made = ask(t);
    extension.containing_type = (char *)(uintptr_t) "shown.Outer";
    extension.extension_number = 123;
    request.message_request_case = CASE(FILE_CONTAINING_EXTENSION);
    request.file_containing_extension = &extension;
    send_request(made, &request);
    expect_files(receive(made), "shown.proto", "shown_part.proto");
    extension.extension_number = 124;
    send_request(made, &request);
    expect_error(receive(made), BOW_NOT_FOUND, "shown.Outer");

    request.message_request_case = CASE(ALL_EXTENSION_NUMBERS_OF_TYPE);
    request.all_extension_numbers_of_type = extension.containing_type;
    send_request(made, &request);
    const response_type *response = receive(made);
    assert_int_equal(response->message_response_case, ANSWER(ALL_EXTENSION_NUMBERS_RESPONSE));
    assert_int_equal(response->all_extension_numbers_response->n_extension_number, 2);
    assert_int_equal(response->all_extension_numbers_response->extension_number[0] +
                         response->all_extension_numbers_response->extension_number[1],
                     223);
    request.all_extension_numbers_of_type = (char *)(uintptr_t) "shown.Part";
    send_request(made, &request);
    assert_int_equal(receive(made)->all_extension_numbers_response->n_extension_number, 0);
    request.all_extension_numbers_of_type = (char *)(uintptr_t) "shown.Show";
    send_request(made, &request);
    expect_error(receive(made), BOW_NOT_FOUND, "shown.Show");
    end(made);
}

static void test_reflection_says_what_it_does_not_know_and_goes_on(void **state)
{
    request_type request = REQUEST_INIT;
    struct calls *t = *state;

    start_with(t, true);
    asking made = ask(t);
    expect_error(ask_symbol(made, "shown.Nothing"), BOW_NOT_FOUND, "shown.Nothing");
    expect_error(ask_symbol(made, ""), BOW_NOT_FOUND, "");
    expect_error(ask_file(made, "bowline/options.proto"), BOW_NOT_FOUND, "bowline/options.proto");
    send_request(made, &request);
    expect_error(receive(made), BOW_INVALID_ARGUMENT, "asks for nothing");
    expect_files(ask_symbol(made, "shown.Part"), "shown_part.proto", NULL);
    end(made);
}

static void test_reflection_does_not_know_a_file_generated_without_its_bytes(void **state)
{
    static struct bow_file file; /* the server has it until the test is torn down */
    static struct bow_service service;
    struct calls *t = *state;

    file = *shown__show__service.file;
    service = shown__show__service;
    file.bytes = NULL;
    file.n_bytes = 0;
    service.file = &file;
    start_with_service(t, true, &service);
    asking made = ask(t);
    expect_error(ask_file(made, file.name), BOW_NOT_FOUND, file.name);
    expect_error(ask_symbol(made, "shown.Show"), BOW_NOT_FOUND, "shown.Show");
    end(made);
}

/* The older name */

static void test_reflection_answers_by_its_older_name_too(void **state)
{
    const struct bow_method *known =
        grpc__reflection__v1__server_reflection__server_reflection_info__method();
    struct bow_method method = *known;
    request_type request = REQUEST_INIT;
    struct calls *t = *state;
    asking made = {NULL};

    start_with(t, true);
    method.path = ALPHA;
    assert_int_equal(bow_client_open(t->client, &method, NULL, NULL, NULL, NULL, &made.stream), 0);
    request.message_request_case = CASE(LIST_SERVICES);
    request.list_services = (char *)(uintptr_t) "";
    send_request(made, &request);
    expect_listed(receive(made));
    end(made);
}

/* Who may ask, and how much */

static void test_reflection_is_off_unless_asked_for(void **state)
{
    struct bow_result result = BOW_RESULT_INIT;
    const ProtobufCMessage *message = NULL;
    struct calls *t = *state;

    start_with(t, false);
    asking made = ask(t);
    assert_int_equal(bow_stream_receive(made.stream, WAIT_NS, &message), 0);
    (void)bow_stream_finish(made.stream, &result);
    assert_int_equal(result.status.code, BOW_UNIMPLEMENTED);
    bow_result_fini(&result);
}

/* The server stops reading requests while answers wait, so it is this side that cannot go on. */
static void test_reflection_f15_client_that_does_not_read_is_not_read_from(void **state)
{
    request_type request = REQUEST_INIT;
    struct calls *t = *state;
    int n_sent = 0;
    int rc = 0;

    start_with(t, true);
    asking made = ask(t);
    request.message_request_case = CASE(FILE_BY_FILENAME);
    request.file_by_filename = (char *)(uintptr_t) "grpc/reflection/v1/reflection.proto";
    while (n_sent < N_ASKED && (rc = bow_stream_write(made.stream, &request.base, 300 * MS)) == 0) {
        n_sent++;
    }
    assert_int_equal(rc, -ETIMEDOUT);
    for (int i = 0; i < n_sent; i++) {
        expect_files(receive(made), "grpc/reflection/v1/reflection.proto", NULL);
    }
    end(made);
}

/* Before the start */

static int index_services(struct bow_context *context, void *user)
{
    struct bow__reflection reflection;
    const char *bad = NULL;

    (void)user;
    bow__reflection_init(&reflection, context);
    int rc = bow__reflection_add(&reflection, &shown__show__service);
    if (rc == 0) {
        rc = bow__reflection_seal(&reflection, &bad);
    }
    if (rc == 0) {
        assert_non_null(bow__reflection_index_symbol(&reflection.index, "shown.Outer.Inner"));
    }
    bow__reflection_fini(&reflection);
    return rc;
}

static void test_reflection_is_made_ready_or_says_that_there_is_no_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, index_services, NULL) > 5);
}

static void expect_one_of_each(struct calls *t)
{
    request_type request = REQUEST_INIT;
    asking made = ask(t);

    request.message_request_case = CASE(LIST_SERVICES);
    request.list_services = (char *)(uintptr_t) "";
    send_request(made, &request);
    expect_listed(receive(made));
    expect_files(ask_symbol(made, "shown.Outer.Inner"), "shown.proto", "shown_part.proto");
    end(made);
}

/* Returns whether the first start of a server failed at its n-th allocation; the second did not. */
static bool start_twice(struct calls *t, size_t n)
{
    struct bow_server_options options;
    struct bow_client_options client_options;

    calls_server_options(t, &options);
    options.reflection = true;
    t->server = calls_make_server(t, &options);
    assert_int_equal(shown__show__serve(t->server, &no_handlers, NULL), 0);
    t->alloc.fail_at = t->alloc.n_calls + n;
    int rc = calls_open_server(t, t->server);
    t->alloc.fail_at = 0;
    if (rc != 0) {
        assert_int_equal(rc, -ENOMEM);
        assert_int_equal(calls_open_server(t, t->server), 0);
    }
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    return rc != 0;
}

/* Whatever the one that failed had come to. */
static void test_reflection_after_a_start_without_memory_is_as_after_another(void **state)
{
    struct calls *t = *state;
    bool has_failed = true;
    size_t n = 0;

    while (has_failed) {
        has_failed = start_twice(t, ++n);
        expect_one_of_each(t);
        calls_free_client(t);
        calls_kill_server(t);
    }
    assert_in_range(n, 20, 2000);
}

static void test_reflection_of_a_descriptor_that_cannot_be_read_is_refused_at_start(void **state)
{
    static const uint8_t bytes[] = {10, 99};
    struct bow_file file = {.name = "bad.proto", .bytes = bytes, .n_bytes = sizeof(bytes)};
    struct bow_service service = shown__show__service;
    struct bow_server_options options;
    struct calls *t = *state;

    service.file = &file;
    calls_server_options(t, &options);
    options.reflection = true;
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_add_service(t->server, &service, &no_handlers, sizeof(no_handlers),
                                            service.hash, NULL),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls_open_server(t, t->server), -EBADMSG);
        assert_non_null(strstr(bow_server_error(t->server), "bad.proto"));
    }
    bow_server_free(t->server);
    t->server = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflection_lists_all_services),
        TEST(test_reflection_finds_the_file_of_whatever_is_declared),
        TEST(test_reflection_sends_an_import_once_and_what_is_asked_for_always),
        TEST(test_reflection_leaves_out_imports_that_only_options_need),
        TEST(test_reflection_finds_extensions),
        TEST(test_reflection_says_what_it_does_not_know_and_goes_on),
        TEST(test_reflection_does_not_know_a_file_generated_without_its_bytes),
        TEST(test_reflection_answers_by_its_older_name_too),
        TEST(test_reflection_is_off_unless_asked_for),
        TEST(test_reflection_f15_client_that_does_not_read_is_not_read_from),
        cmocka_unit_test(test_reflection_is_made_ready_or_says_that_there_is_no_memory),
        TEST(test_reflection_after_a_start_without_memory_is_as_after_another),
        TEST(test_reflection_of_a_descriptor_that_cannot_be_read_is_refused_at_start),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
