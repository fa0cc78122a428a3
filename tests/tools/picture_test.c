/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What bowline watch makes of answers: told/first.json and told/second.json are those of a server,
 * two seconds apart for these tests; the others are what nobody should say.
 */
#include "tools/bowline/picture_show.h"
#include "tools/bowline/say.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const char *folder;

static struct sample sample_of(const char *json, uint64_t at_ns)
{
    struct bow_slice bytes = {(const uint8_t *)json, strlen(json)};
    struct sample sample = {.arena = NULL};
    char reason[400] = "";

    if (sample_read(bytes, at_ns, &sample, reason, sizeof(reason)) != 0) {
        fail_msg("%s", reason);
    }
    return sample;
}

/* From malloc(). */
static char *recorded(const char *name)
{
    char path[1000];
    char *text = calloc(1, 100000);

    snprintf(path, sizeof(path), "%s/%s.json", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, 99999, file) > 0);
    fclose(file);
    return text;
}

struct pair {
    struct sample then, now;
    struct picture picture;
};

static void make_pair(struct pair *pair, const char *then, const char *now, enum watch_sort sort)
{
    pair->then = sample_of(then, 5 * SECOND);
    pair->now = sample_of(now, 7 * SECOND);
    assert_int_equal(picture_make(&pair->then, &pair->now, sort, &pair->picture), 0);
}

static void make_recorded(struct pair *pair, enum watch_sort sort)
{
    char *then = recorded("first");
    char *now = recorded("second");

    make_pair(pair, then, now, sort);
    free(then);
    free(now);
}

static void free_pair(struct pair *pair)
{
    picture_fini(&pair->picture);
    sample_fini(&pair->then);
    sample_fini(&pair->now);
}

static char *text_of(const struct picture *picture, unsigned columns, unsigned rows)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    const struct page page = {.file = file, .columns = columns, .rows = rows};

    assert_non_null(file);
    picture_text(picture, "there:1", &page);
    fclose(file);
    assert_int_equal(strlen(text), len);
    return text;
}

static char *json_of(const struct picture *picture)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    assert_non_null(file);
    picture_json(picture, "there:1", 1.5, file);
    fclose(file);
    assert_int_equal(strlen(text), len);
    return text;
}

/* Numbers */

static void test_picture_tells_what_happened_between_two_answers(void **state)
{
    struct pair pair;

    (void)state;
    make_recorded(&pair, WATCH_BY_RATE);
    const struct picture *picture = &pair.picture;
    assert_true(picture->seconds == 2);
    assert_true(picture->calls == 105);
    assert_true(picture->errors == 4); /* 5 NOT_FOUND, 3 CANCELLED */
    assert_int_equal(picture->in_flight, 1);
    assert_true(picture->bytes_received == 5670 / 2.0);
    assert_true(picture->bytes_sent == 5459 / 2.0);
    assert_int_equal(picture->times.n, 210);
    assert_int_equal(picture->times.p50_us, 3);
    assert_int_equal(picture->times.p99_us, 1572);
    assert_int_equal(picture->times.max_us, 3997);
    assert_int_equal(picture->n_methods, 4); /* the others were never called */
    assert_string_equal(picture->methods[0].name, "/desk.Desk/Echo");
    assert_true(picture->methods[0].calls == 100);
    assert_true(picture->methods[0].errors == 0);
    assert_int_equal(picture->methods[0].times.n, 200);
    assert_int_equal(picture->methods[0].times.p50_us, 3);
    assert_int_equal(picture->methods[0].times.p99_us, 17);
    assert_int_equal(picture->methods[0].times.max_us, 19);
    assert_string_equal(picture->methods[1].name, "/desk.Desk/Work");
    assert_true(picture->methods[1].calls == 2.5);
    assert_true(picture->methods[1].errors == 2.5);
    assert_int_equal(picture->methods[1].in_flight, 1);
    free_pair(&pair);
}

static void test_picture_tells_loops_calls_and_limits(void **state)
{
    struct pair pair;

    (void)state;
    make_recorded(&pair, WATCH_BY_RATE);
    assert_int_equal(pair.picture.n_loops, 1);
    assert_true(pair.picture.loops[0].turns == 67);
    assert_true(pair.picture.loops[0].busy > 0.0024 && pair.picture.loops[0].busy < 0.00242);
    assert_int_equal(pair.picture.n_calls_shown, 1);
    assert_string_equal(pair.picture.calls_shown[0]->stage, "in the handler");
    assert_int_equal(pair.picture.n_limits, 3); /* max_server_calls is none */
    assert_string_equal(pair.picture.limits[0].name, "max_connections");
    assert_int_equal(pair.picture.limits[0].now, 1);
    assert_int_equal(pair.picture.limits[0].most, 20);
    free_pair(&pair);
}

static void assert_first(enum watch_sort sort, const char *name)
{
    struct pair pair;

    make_recorded(&pair, sort);
    assert_string_equal(pair.picture.methods[0].name, name);
    free_pair(&pair);
}

static void test_picture_is_sorted_as_asked(void **state)
{
    (void)state;
    assert_first(WATCH_BY_RATE, "/desk.Desk/Echo");
    assert_first(WATCH_BY_ERRORS, "/desk.Desk/Work");
    assert_first(WATCH_BY_P99, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    assert_first(WATCH_BY_IN_FLIGHT, "/desk.Desk/Work");
    assert_first(WATCH_BY_NAME, "/desk.Desk/Echo");
}

static void test_picture_of_the_same_answer_is_quiet(void **state)
{
    char *now = recorded("second");
    struct pair pair;

    (void)state;
    make_pair(&pair, now, now, WATCH_BY_RATE);
    assert_true(pair.picture.calls == 0);
    assert_int_equal(pair.picture.times.n, 0);
    char *text = text_of(&pair.picture, 100, 0);
    char *json = json_of(&pair.picture);
    assert_non_null(strstr(text, "0 calls/s  0 not OK/s  p50 -  p99 -  1 in flight"));
    assert_non_null(strstr(json, "\"latency_seconds\":null"));
    assert_false(picture_is_restart(&pair.then, &pair.now));
    free(text);
    free(json);
    free_pair(&pair);
    free(now);
}

static void test_picture_restart_is_known(void **state)
{
    char *first = recorded("first");
    char *second = recorded("second");
    struct pair pair;

    (void)state;
    make_pair(&pair, second, first, WATCH_BY_RATE);
    assert_true(picture_is_restart(&pair.then, &pair.now));
    assert_true(pair.picture.calls == 0);
    free_pair(&pair);
    free(first);
    free(second);
}

/* Looks */

static void test_picture_text_has_what_one_looks_for(void **state)
{
    static const char *const parts[] = {
        "there:1  serving  calls at 127.0.0.1:45551\n"
        "105 calls/s  4 not OK/s  p50 3 us  p99 1.6 ms  1 in flight  1 connection  ",
        "desk.Desk/Work                         2.5       2.5    21 us    34 us    34 us          "
        "1\n",
        "bow-server",
        "127.0.0.1:48548        in the handler\n",
        "max_connections                                                      1          20     5 "
        "%\n",
    };
    struct pair pair;

    (void)state;
    make_recorded(&pair, WATCH_BY_RATE);
    char *text = text_of(&pair.picture, 90, 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strstr(text, parts[i]) == NULL) {
            fail_msg("no \"%s\" in\n%s", parts[i], text);
        }
    }
    assert_null(strchr(text, '\033'));
    free(text);
    free_pair(&pair);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

static void test_picture_text_fits_its_page(void **state)
{
    struct pair pair;

    (void)state;
    make_recorded(&pair, WATCH_BY_RATE);
    for (unsigned rows = 6; rows < 60; rows++) {
        char *text = text_of(&pair.picture, 80, rows);
        if (count_lines(text) > rows) {
            fail_msg("%u rows:\n%s", rows, text);
        }
        assert_non_null(strstr(text, "desk.Desk/Echo"));
        free(text);
    }
    for (unsigned columns = 1; columns < 300; columns += 7) {
        free(text_of(&pair.picture, columns, 24));
    }
    free_pair(&pair);
}

/* What nobody should say */

#define REST                                                                                       \
    "\"counters\":{\"calls_started\":1},\"config\":{\"version\":\"1\",\"max_connections\":1,"      \
    "\"addresses\":\"a\\u001b[31mb\"},\"n_connections\":18446744073709551615,\"n_calls\":7,"

static const char *const hostile[] = {
    "{" REST "\"methods\":[{\"method\":\"/\\u001b]0;gone\\u0007\\u009b31m\\r\\n\",\"started\":1,"
    "\"ended\":1}]}",
    "{" REST "\"calls\":[{\"method\":\"\\u001b[2J\",\"peer\":\"\\u009b2J\",\"stage\":\"\\u001bc\","
    "\"detail\":\"\\u202e\\u0090\\u007f\",\"age_us\":18446744073709551615,\"left_us\":0}]}",
    "{" REST "\"loops\":[{\"name\":\"\\u001b[H\",\"state\":\"held\\u001b\",\"held_by\":\"\\n\\n\","
    "\"held_us\":18446744073709551615}]}",
    "{" REST "\"methods\":[{\"method\":\"\",\"started\":18446744073709551615,\"ended\":"
    "18446744073709551615,\"codes\":{\"OK\":18446744073709551615,\"\\u001b\":1},\"times_us\":"
    "[[9,1],[3,2],[],[1],[1,2,3],[null,\"x\"],[1e300,1e300],[-1,-1],[3,18446744073709551615],"
    "[{},[]]],\"in_flight\":18446744073709551615},{\"method\":\"\",\"started\":1}]}",
    "{" REST "\"connections\":[{\"calls\":18446744073709551615,\"waiting_bytes\":"
    "18446744073709551615},{\"calls\":1,\"waiting_bytes\":18446744073709551615}]}",
};
#define N_HOSTILE (sizeof(hostile) / sizeof(hostile[0]))

static void assert_harmless(const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c != '\n' && (c < ' ' || c >= 0x7f)) {
            fail_msg("byte %02x in\n%s", c, text);
        }
    }
}

/* One line, no controls; what is beyond ASCII is as JSON has it. */
static void assert_json_harmless(const char *json)
{
    assert_int_equal(count_lines(json), 1);
    for (size_t i = 0; json[i] != '\0'; i++) {
        unsigned char c = (unsigned char)json[i];
        bool is_c1 = c == 0xc2 && (unsigned char)json[i + 1] < 0xa0;
        assert_true(c == '\n' || (c >= ' ' && c != 0x7f && !is_c1));
    }
}

static void test_picture_hostile_texts_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_HOSTILE; i++) {
        struct pair pair;
        make_pair(&pair, hostile[(i + 1) % N_HOSTILE], hostile[i], (enum watch_sort)(i % 5));
        for (unsigned rows = 0; rows < 30; rows++) {
            char *text = text_of(&pair.picture, 40 + rows, rows);
            assert_harmless(text);
            assert_true(rows < 6 || count_lines(text) <= rows);
            free(text);
        }
        char *json = json_of(&pair.picture);
        assert_json_harmless(json);
        free(json);
        free_pair(&pair);
    }
}

static void test_picture_long_names_keep_their_end(void **state)
{
    char json[2000];
    char name[600];
    struct pair pair;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    memcpy(name + 180, "/Method", 8);
    snprintf(json, sizeof(json), "{" REST "\"methods\":[{\"method\":\"/%s\",\"started\":1}]}",
             name);
    make_pair(&pair, json, json, WATCH_BY_RATE);
    char *text = text_of(&pair.picture, 90, 0);
    assert_non_null(strstr(text, "\n...xxx"));
    assert_non_null(strstr(text, "x/Method "));
    free(text);
    free_pair(&pair);
}

static void test_sample_cut_at_each_byte_is_refused(void **state)
{
    char *whole = recorded("second");
    size_t len = strlen(whole);

    (void)state;
    for (size_t n = 0; n < len; n++) {
        struct sample sample = {.arena = NULL};
        char reason[400] = "";
        char *begin = malloc(n + 1); /* of its own, for the sanitizer to watch */
        assert_non_null(begin);
        memcpy(begin, whole, n);
        struct bow_slice bytes = {(const uint8_t *)begin, n};
        assert_int_equal(sample_read(bytes, 0, &sample, reason, sizeof(reason)), -EBADMSG);
        assert_true(reason[0] != '\0');
        assert_null(sample.arena);
        free(begin);
    }
    free(whole);
}

static void test_sample_of_something_else_is_refused(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"status\":\"ok\"}",
        "<html>",
        "{\"methods\":[{\"started\":\"many\"}]}",
        "{\"config\":{},\"counters\":{},\"methods\":[{\"times_us\":[7]}]}",
    };
    char reason[400];

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct bow_slice bytes = {(const uint8_t *)texts[i], strlen(texts[i])};
        struct sample sample;
        if (sample_read(bytes, 0, &sample, reason, sizeof(reason)) != -EBADMSG) {
            fail_msg("%s", texts[i]);
        }
    }
}

static void test_sample_of_a_newer_server_is_read(void **state)
{
    struct sample sample = sample_of("{" REST "\"news\":{\"a\":[1,{}]},\"loops\":[{\"x\":1}]}", 0);

    (void)state;
    assert_int_equal(sample.told->total_calls, 7);
    sample_fini(&sample);
}

/* say.c */

static void assert_said(const char *text, const char *expected, const char *expected_json)
{
    char said[200] = "";
    char json[200] = "";
    FILE *file = fmemopen(said, sizeof(said), "w");
    FILE *other = fmemopen(json, sizeof(json), "w");

    assert_non_null(file);
    assert_non_null(other);
    say_text(file, text);
    say_json_string(other, text, strlen(text));
    fclose(file);
    fclose(other);
    assert_string_equal(said, expected);
    assert_string_equal(json, expected_json);
}

static void test_say_escapes_what_a_terminal_follows(void **state)
{
    (void)state;
    assert_said("a\033[31m\r\x7f", "a\\x1b[31m\\x0d\\x7f", "\"a\\u001b[31m\\u000d\\u007f\"");
    assert_said("\xc2\x9b"
                "31m",
                "\\xc2\\x9b31m", "\"\\u009b31m\"");
    assert_said("\x9b\xff\xc3", "\\x9b\\xff\\xc3", "\"\\ufffd\\ufffd\\ufffd\"");
    assert_said("\xed\xa0\x80\xc0\x80", "\\xed\\xa0\\x80\\xc0\\x80",
                "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
    assert_said("\xc3\xa4\xe2\x82\xac\xf0\x9f\x8d\xb5\xc2\xa0\"\\",
                "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8d\xb5\xc2\xa0\"\\",
                "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8d\xb5\xc2\xa0\\\"\\\\\"");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picture_tells_what_happened_between_two_answers),
        cmocka_unit_test(test_picture_tells_loops_calls_and_limits),
        cmocka_unit_test(test_picture_is_sorted_as_asked),
        cmocka_unit_test(test_picture_of_the_same_answer_is_quiet),
        cmocka_unit_test(test_picture_restart_is_known),
        cmocka_unit_test(test_picture_text_has_what_one_looks_for),
        cmocka_unit_test(test_picture_text_fits_its_page),
        cmocka_unit_test(test_picture_hostile_texts_are_escaped),
        cmocka_unit_test(test_picture_long_names_keep_their_end),
        cmocka_unit_test(test_sample_cut_at_each_byte_is_refused),
        cmocka_unit_test(test_sample_of_something_else_is_refused),
        cmocka_unit_test(test_sample_of_a_newer_server_is_read),
        cmocka_unit_test(test_say_escapes_what_a_terminal_follows),
    };

    folder = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
