/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Trace contexts as text: what is read, what is not, and what of a long tracestate is kept. */

#include "rpc/interceptors/trace_context.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" SPAN "-01"

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

/* traceparent */

static void test_trace_context_good_ones_are_read(void **state)
{
    static const struct {
        const char *text;
        unsigned flags;
    } rows[] = {
        {GOOD, BOW_SPAN_SAMPLED},
        {"00-" TRACE "-" SPAN "-00", 0},
        {"00-" TRACE "-" SPAN "-02", BOW_SPAN_RANDOM},
        {"00-" TRACE "-" SPAN "-03", BOW_SPAN_SAMPLED | BOW_SPAN_RANDOM},
        {"00-" TRACE "-" SPAN "-fd", BOW_SPAN_SAMPLED}, /* what is not known is left out */
        {"01-" TRACE "-" SPAN "-01", BOW_SPAN_SAMPLED}, /* later versions: what 00 has */
        {"cc-" TRACE "-" SPAN "-01-what-the-future-brings", BOW_SPAN_SAMPLED},
        {"fe-" TRACE "-" SPAN "-01-", BOW_SPAN_SAMPLED},
    };
    static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                         0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    static const uint8_t span_id[8] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bow_span_context context;
        if (bow_span_context_read(slice_of(rows[i].text), &context) != 0) {
            fail_msg("%s is not read", rows[i].text);
        }
        assert_int_equal(context.flags, rows[i].flags);
        assert_memory_equal(context.trace_id, trace_id, sizeof(trace_id));
        assert_memory_equal(context.span_id, span_id, sizeof(span_id));
    }
}

static void expect_bad(struct bow_slice text)
{
    struct bow_span_context context;
    struct bow_span_context before;

    memset(&context, 0x5A, sizeof(context));
    before = context;
    if (bow_span_context_read(text, &context) != -EBADMSG) {
        fail_msg("\"%.*s\" is read", (int)text.len, (const char *)text.data);
    }
    assert_memory_equal(&context, &before, sizeof(context));
}

static void test_trace_context_bad_ones_are_not(void **state)
{
    static const char *const rows[] = {
        "",
        "00",
        "ff-" TRACE "-" SPAN "-01", /* a version that is forbidden */
        "0-" TRACE "-" SPAN "-01",  /* one digit */
        "000-" TRACE "-" SPAN "-01",
        "0x-" TRACE "-" SPAN "-01", /* no digit */
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-" TRACE "-" SPAN "-0A",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-01", /* a digit less */
        "00-" TRACE "0-" SPAN "-01",                      /* one more */
        "00-" TRACE "-" SPAN "0-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-" TRACE "-" SPAN "-1",
        "00-" TRACE "-" SPAN "-01-", /* version 00 ends with the flags */
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-01.",
        "01-" TRACE "-" SPAN "-01more", /* a later one may go on, behind a dash */
        " " GOOD,
        GOOD " ",
        "00-" TRACE "-" SPAN "-.1",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-" SPAN "-01",
        "00-" TRACE "-00f067aa0ba902b@-01",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_bad(slice_of(rows[i]));
    }
    for (size_t n = 0; n < strlen(GOOD); n++) {
        expect_bad((struct bow_slice){(const uint8_t *)GOOD, n});
    }
}

static void test_trace_context_is_written_as_it_was_read(void **state)
{
    struct bow_span_context context;
    char text[BOW_TRACEPARENT_BYTES];
    char trace_id[BOW_TRACE_ID_TEXT_BYTES];
    char span_id[BOW_SPAN_ID_TEXT_BYTES];

    (void)state;
    assert_int_equal(bow_span_context_read(slice_of("fe-" TRACE "-" SPAN "-ff-x"), &context), 0);
    bow_span_context_write(&context, text);
    assert_string_equal(text, "00-" TRACE "-" SPAN "-03");
    bow_trace_id_write(&context, trace_id);
    assert_string_equal(trace_id, TRACE);
    bow_span_id_write(&context, span_id);
    assert_string_equal(span_id, SPAN);
}

static int find(const struct bow_metadata_entry *entries, size_t n)
{
    struct bow_span_context context;

    return bow__trace_context_find(&(struct bow_metadata){entries, n}, &context);
}

static void test_trace_context_is_one_or_none(void **state)
{
    const struct bow_metadata_entry entries[] = {
        {"x", slice_of(GOOD)},
        {"traceparent", slice_of(GOOD)},
        {"tracestate", slice_of("a=1")},
        {"traceparent", slice_of(GOOD)},
    };
    const struct bow_metadata_entry bad = {"traceparent", slice_of("00-")};

    (void)state;
    assert_int_equal(find(entries, 3), 0);
    assert_int_equal(find(entries, 1), -ENODATA);
    assert_int_equal(find(entries, 4), -ENODATA);
    assert_int_equal(find(&bad, 1), -ENODATA);
}

/* tracestate */

static void expect_state(const char *first, const char *second, const char *expected)
{
    const struct bow_metadata_entry entries[] = {
        {"tracestate", slice_of(first)},
        {"traceparent", slice_of(GOOD)},
        {"tracestate", second != NULL ? slice_of(second) : slice_of("")},
    };
    char text[BOW__TRACESTATE_BYTES];

    size_t n = bow__tracestate_read(&(struct bow_metadata){entries, second != NULL ? 3 : 2}, text);
    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
}

/* `n` times a character, in front of and behind something. */
static const char *text_of(const char *before, char c, size_t n, const char *behind)
{
    static char texts[4][1024];
    static size_t which;
    char *text = texts[which++ % 4];

    size_t len = strlen(before);
    memcpy(text, before, len);
    memset(text + len, c, n);
    strcpy(text + len + n, behind);
    return text;
}

static void test_trace_state_good_members_go_on(void **state)
{
    (void)state;
    expect_state("a=1", NULL, "a=1");
    expect_state("a=1,b=2", NULL, "a=1,b=2");
    expect_state("a=1", "b=2,c=3", "a=1,b=2,c=3"); /* several entries are one list */
    expect_state(" a=1 ,\tb=2\t", NULL, "a=1,b=2");
    expect_state("a=1,,b=2, ,", ",c=3", "a=1,b=2,c=3"); /* empty members are allowed, and nothing */
    expect_state("a= 1", NULL, "a= 1");
    expect_state("0tenant@system=x!~", NULL, "0tenant@system=x!~");
    expect_state("a_-*/9=1", NULL, "a_-*/9=1");
    expect_state("a=1,a=2", NULL, "a=1,a=2"); /* not ours to choose from */
    const char *longest = text_of("", 'k', 256, "=1");
    expect_state(longest, NULL, longest);
    longest = text_of("k=", 'v', 256, "");
    expect_state(longest, NULL, longest);
    longest = text_of("", '0', 241, "@abcdefghijklmn=1");
    expect_state(longest, NULL, longest);
}

static void test_trace_state_with_a_bad_member_is_left_out(void **state)
{
    static const char *const rows[] = {
        "=1",      "a",          "a=",       "A=1",   "1a=1",   "a@=1",  "@a=1",
        "a@B=1",   "a@1=1",      "a b=1",    "a=1=2", "a=\x7f", "a=\t1", "a=\xc3\xa4",
        "a@b@c=1", "\xc3\xa4=1", "a@b_=1,=", "a:b=1", "a.b=1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_state(rows[i], NULL, "");
        expect_state("good=1", rows[i], "");
    }
    expect_state(text_of("", 'k', 257, "=1"), NULL, "");
    expect_state(text_of("k=", 'v', 257, ""), NULL, "");
    expect_state(text_of("", '0', 242, "@a=1"), NULL, "");
    expect_state("a@abcdefghijklmno=1", NULL, "");
}

/* "a00=1,a01=1,…" */
static const char *members_of(size_t n)
{
    static char text[1024];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%sa%02zu=1", i > 0 ? "," : "", i);
    }
    return text;
}

static void test_trace_state_has_so_many_members(void **state)
{
    (void)state;
    expect_state(members_of(BOW_LIMIT_TRACESTATE_MEMBERS), NULL,
                 members_of(BOW_LIMIT_TRACESTATE_MEMBERS));
    expect_state(members_of(BOW_LIMIT_TRACESTATE_MEMBERS + 1), NULL, "");
    expect_state(members_of(BOW_LIMIT_TRACESTATE_MEMBERS), "z=1", "");
}

static void test_trace_state_beyond_the_limit_loses_long_members_then_the_last(void **state)
{
    const char *whole = text_of("a=1,b=", 'v', 250, ",c=2");
    const char *exact = text_of("d=", 'v', BOW_LIMIT_TRACESTATE_BYTES - 250 - 10 - 3, "");
    char text[BOW__TRACESTATE_BYTES + 16];

    (void)state;
    (void)snprintf(text, sizeof(text), "%s,%s", whole, exact);
    assert_int_equal(strlen(text), BOW_LIMIT_TRACESTATE_BYTES);
    expect_state(whole, exact, text);
    /* A byte more: the last long one goes, and the short ones around it stay. */
    expect_state(whole, text_of("d=", 'v', BOW_LIMIT_TRACESTATE_BYTES - 250 - 10 - 2, ",e=3"),
                 text_of("a=1,b=", 'v', 250, ",c=2,e=3"));
    /* None is long: the last ones go. */
    const char *fours[] = {text_of("a=", 'v', 126, ""), text_of("b=", 'v', 126, ""),
                           text_of("c=", 'v', 126, ""), text_of("d=", 'v', 123, "")};
    char given[1024];
    (void)snprintf(given, sizeof(given), "%s,%s,%s,%s", fours[0], fours[1], fours[2], fours[3]);
    assert_int_equal(strlen(given), BOW_LIMIT_TRACESTATE_BYTES);
    expect_state(given, NULL, given);
    (void)snprintf(text, sizeof(text), "%s,%s,%s", fours[0], fours[1], fours[2]);
    expect_state(given, "e=1", given);
    expect_state(text, text_of("d=", 'v', 124, ",e=1"), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_context_good_ones_are_read),
        cmocka_unit_test(test_trace_context_bad_ones_are_not),
        cmocka_unit_test(test_trace_context_is_written_as_it_was_read),
        cmocka_unit_test(test_trace_context_is_one_or_none),
        cmocka_unit_test(test_trace_state_good_members_go_on),
        cmocka_unit_test(test_trace_state_with_a_bad_member_is_left_out),
        cmocka_unit_test(test_trace_state_has_so_many_members),
        cmocka_unit_test(test_trace_state_beyond_the_limit_loses_long_members_then_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
