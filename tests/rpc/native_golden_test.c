/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pictures of bytes in docs/protocol.md (its path is the argument): a session
 * makes exactly these, and takes them for what the page says. None is left out.
 */
#include "tests/rpc/native_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_PICTURES 64

struct picture {
    char name[40];
    uint8_t bytes[256];
    size_t len;
    bool used;
};

static struct picture pictures[MAX_PICTURES];
static size_t n_pictures;

/* The page. */

static void add_line(struct picture *picture, char *line)
{
    char *comment = strchr(line, ';');

    if (comment == line) {
        snprintf(picture->name, sizeof(picture->name), "%.*s", (int)strcspn(line + 2, "\n"),
                 line + 2);
        return;
    }
    if (comment != NULL) {
        *comment = '\0';
    }
    picture->len +=
        hex_decode(line, picture->bytes + picture->len, sizeof(picture->bytes) - picture->len);
}

static int read_page(void **state)
{
    const char *path = *state;
    FILE *page = fopen(path, "r");
    char line[512];
    bool inside = false;

    if (page == NULL) {
        fprintf(stderr, "can't read %s\n", path);
        return -1;
    }
    while (fgets(line, sizeof(line), page) != NULL) {
        if (strncmp(line, "```", 3) == 0) {
            n_pictures += inside ? 1 : 0;
            inside = strcmp(line, "```bytes\n") == 0;
        } else if (inside) {
            assert_true(n_pictures < MAX_PICTURES);
            add_line(&pictures[n_pictures], line);
        }
    }
    fclose(page);
    return 0;
}

static const struct picture *picture(const char *name)
{
    for (size_t i = 0; i < n_pictures; i++) {
        if (strcmp(pictures[i].name, name) == 0) {
            pictures[i].used = true;
            return &pictures[i];
        }
    }
    fail_msg("the page has no picture \"%s\"", name);
    return NULL;
}

/* What `side` has to say now is the picture. */
static void assert_says(struct side *side, const char *name)
{
    const struct picture *expected = picture(name);
    uint8_t output[512];
    size_t n = side_take(side, output, sizeof(output));

    if (n != expected->len || memcmp(output, expected->bytes, n) != 0) {
        for (size_t i = 0; i < n; i++) {
            print_message("%02x ", output[i]);
        }
        fail_msg("that is said instead of the picture \"%s\"", name);
    }
}

static void hear(struct side *side, const char *name)
{
    const struct picture *heard = picture(name);

    side_feed(side, heard->bytes, heard->len);
}

static uint64_t begin(struct pair *pair, uint32_t flags, const char *message, size_t len)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/demo.Greeter/SayHello", 22},
        .time_left_ns = UINT64_C(30) * 1000000000,
        .path_key = 1,
    };
    struct side *client = &pair->client;
    uint64_t key = 0;

    assert_int_equal(client->session->ops->open(client->session, &head, NULL, &key), 0);
    if (message == NULL) {
        assert_int_equal(client->session->ops->begin(client->session, key), 0);
    } else {
        assert_int_equal(side_say(client, key, flags, message, len), 0);
    }
    return key;
}

/* One connection, told from the opening to its end, in the order of the page. */
static void test_native_golden_connection_is_as_pictured(void **state)
{
    struct pair pair;
    struct bow_status missing = {.code = BOW_NOT_FOUND, .message = "no such user"};
    struct bow_status bye = {.code = BOW_UNAVAILABLE, .message = "bye"};

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *server = pair.server.session;
    assert_says(&pair.client, "client-opening");
    hear(&pair.server, "client-opening");
    assert_says(&pair.server, "client-opening");

    begin(&pair, BOW__SEND_END, "\x0a\x05world", 7);
    assert_says(&pair.client, "request");
    hear(&pair.server, "request");
    assert_string_equal(pair.server.path, "/demo.Greeter/SayHello");
    assert_true(pair.server.time_left_ns == UINT64_C(30) * 1000000000);
    assert_memory_equal(pair.server.message, "\x0a\x05world", 7);
    begin(&pair, BOW__SEND_END, "\x0a\x05world", 7);
    assert_says(&pair.client, "request-by-number");
    hear(&pair.server, "request-by-number");
    assert_string_equal(pair.server.path, "/demo.Greeter/SayHello");

    assert_int_equal(side_say(&pair.server, 1, BOW__SEND_END, "\x0a\x05hello", 7), 0);
    assert_says(&pair.server, "status-with-reply");
    assert_int_equal(server->ops->finish(server, 3, &missing), 0);
    assert_says(&pair.server, "status-with-error");
    hear(&pair.client, "client-opening");
    hear(&pair.client, "status-with-reply");
    assert_int_equal(pair.client.code, BOW_OK);
    assert_memory_equal(pair.client.message, "\x0a\x05hello", 7);
    hear(&pair.client, "status-with-error");
    assert_int_equal(pair.client.code, BOW_NOT_FOUND);
    assert_string_equal(pair.client.text, "no such user");

    begin(&pair, BOW__SEND_END, "", 0);
    pair_run(&pair);
    pair.client.session->ops->cancel(pair.client.session, 5, BOW_DEADLINE_EXCEEDED);
    assert_says(&pair.client, "cancel");
    hear(&pair.server, "cancel");
    assert_int_equal(pair.server.n_resets, 1);
    assert_int_equal(pair.server.code, BOW_DEADLINE_EXCEEDED);

    assert_true(begin(&pair, 0, "", 0) == 7);
    pair_run(&pair);
    assert_true(begin(&pair, 0, NULL, 0) == 9);
    assert_says(&pair.client, "request-without-message");
    hear(&pair.server, "request-without-message");
    assert_int_equal(pair.server.n_messages, 4);
    assert_true(begin(&pair, 0, "", 0) == 11);
    pair_run(&pair);
    hear(&pair.server, "split-message");
    assert_int_equal(pair.server.key, 7);
    assert_int_equal(pair.server.message_len, 9);
    assert_memory_equal(pair.server.message, "split msg", 9);
    assert_true(pair.server.message_end);
    assert_int_equal(pair.client.session->ops->half_close(pair.client.session, 9), 0);
    assert_says(&pair.client, "half-close");
    hear(&pair.server, "half-close");
    assert_int_equal(pair.server.n_half_closes, 1);
    assert_int_equal(pair.server.key, 9);
    hear(&pair.server, "window");
    assert_int_equal(pair.server.rc, 0);

    server->ops->goaway(server, &bye);
    assert_says(&pair.server, "drain-begin");
    hear(&pair.client, "drain-begin");
    assert_string_equal(pair.client.goaway_text, "bye");
    assert_says(&pair.client, "ping-ack");
    hear(&pair.server, "ping-ack");
    assert_says(&pair.server, "drain-end");
    hear(&pair.client, "drain-end");
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.client.session->n_streams, 3);
    pair_fini(&pair);
}

static void test_native_golden_metadata_is_as_pictured(void **state)
{
    static const struct bow_metadata_entry entry = {"trace-bin", {(const uint8_t *)"\x01\xff", 2}};
    static const struct bow_metadata_entry region = {"region", {(const uint8_t *)"eu", 2}};
    static const struct bow_metadata_entry cost = {"cost", {(const uint8_t *)"7", 1}};
    struct bow_metadata metadata = {&region, 1};
    struct bow_status ok = {.code = BOW_OK, .message = "", .metadata = {&cost, 1}};
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4},
        .time_left_ns = BOW_NEVER,
        .metadata = {&entry, 1},
        .encoding = BOW__ENCODING_ZSTD,
    };
    struct pair pair;
    uint64_t key = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_run(&pair);
    struct bow__session *client = pair.client.session;
    struct bow__session *server = pair.server.session;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    assert_says(&pair.client, "request-with-metadata");
    hear(&pair.server, "request-with-metadata");
    assert_string_equal(pair.server.metadata, "trace-bin=\x01\xff ");
    assert_int_equal(pair.server.encoding, BOW__ENCODING_ZSTD);

    assert_int_equal(server->ops->respond(server, key, &metadata, BOW__ENCODING_GZIP), 0);
    assert_says(&pair.server, "response");
    hear(&pair.client, "response");
    assert_string_equal(pair.client.metadata, "region=eu ");
    assert_int_equal(server->ops->finish(server, key, &ok), 0);
    assert_says(&pair.server, "status-with-metadata");
    hear(&pair.client, "status-with-metadata");
    assert_string_equal(pair.client.metadata, "cost=7 ");
    assert_int_equal(pair.client.code, BOW_OK);
    pair_fini(&pair);
}

static void test_native_golden_window_is_as_pictured(void **state)
{
    struct pair pair;
    struct bow__session_options options;
    static uint8_t bytes[32768];

    (void)state;
    pair_init(&pair);
    options = pair_options(&pair, false);
    options.first_key = 11;
    assert_int_equal(side_open(&pair.client, &options), 0);
    options = pair_options(&pair, true);
    assert_int_equal(side_open(&pair.server, &options), 0);
    assert_true(begin(&pair, 0, NULL, 0) == 11);
    pair_run(&pair);
    assert_int_equal(side_say(&pair.client, 11, 0, bytes, sizeof(bytes)), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.message_len, sizeof(bytes));
    pair.server.session->ops->consumed(pair.server.session, 11, sizeof(bytes));
    assert_says(&pair.server, "window");
    pair_fini(&pair);
}

static void test_native_golden_error_is_as_pictured(void **state)
{
    struct pair pair;
    uint8_t opening[32];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_take(&pair.server, opening, sizeof(opening));
    hear(&pair.server, "client-opening");
    hear(&pair.server, "ping-too-short");
    assert_true(pair.server.rc < 0);
    assert_says(&pair.server, "goaway-with-error");
    hear(&pair.client, "client-opening");
    hear(&pair.client, "goaway-with-error");
    assert_int_equal(pair.client.goaway_code, BOW_INTERNAL);
    assert_string_equal(pair.client.goaway_text, "PING frame: length 7 is below 8");
    pair_fini(&pair);
}

static void test_native_golden_no_picture_is_left_out(void **state)
{
    (void)state;
    assert_true(n_pictures > 10);
    for (size_t i = 0; i < n_pictures; i++) {
        if (!pictures[i].used) {
            fail_msg("no test looks at the picture \"%s\"", pictures[i].name);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_golden_connection_is_as_pictured),
        cmocka_unit_test(test_native_golden_metadata_is_as_pictured),
        cmocka_unit_test(test_native_golden_window_is_as_pictured),
        cmocka_unit_test(test_native_golden_error_is_as_pictured),
        cmocka_unit_test(test_native_golden_no_picture_is_left_out),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s PAGE\n", argv[0]);
        return 2;
    }
    void *page = argv[1];
    if (read_page(&page) < 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
