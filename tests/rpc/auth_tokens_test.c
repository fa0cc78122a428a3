/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files of tokens: what a token is, what is said of a file that is wrong, and which tokens are
 * found in one.
 */

#include "rpc/interceptors/auth_tokens.h"
#include "tests/support/alloc.h"
#include "tests/support/scratch.h"

#include <bowline/context.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct files {
    struct bow_context *context;
    char path[64];
    struct bow__tokens tokens;
    struct bow_transport_error error;
};

static int setup(void **state)
{
    struct files *f = calloc(1, sizeof(*f));

    assert_int_equal(bow_context_new(NULL, &f->context), 0);
    int fd = mkstemp(scratch_path(f->path, sizeof(f->path), "tokens-XXXXXX"));
    assert_true(fd >= 0);
    close(fd);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct files *f = *state;

    bow__tokens_fini(&f->tokens, f->context);
    assert_int_equal(bow_context_bytes(f->context), 0);
    bow_context_unref(f->context);
    unlink(f->path);
    free(f);
    return 0;
}

static int read_text(struct files *f, const char *text, size_t len)
{
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return bow__tokens_read(&f->tokens, f->context, f->path, &f->error);
}

static bool has(struct files *f, const char *token)
{
    struct bow_slice subject;

    return bow__tokens_have(&f->tokens, (struct bow_slice){(const uint8_t *)token, strlen(token)},
                            &subject);
}

static void expect_subject(struct files *f, const char *token, const char *expected)
{
    struct bow_slice subject = {NULL, 0};

    assert_true(bow__tokens_have(
        &f->tokens, (struct bow_slice){(const uint8_t *)token, strlen(token)}, &subject));
    assert_int_equal(subject.len, strlen(expected));
    assert_memory_equal(subject.data, expected, subject.len);
}

static void test_tokens_name_their_subjects(void **state)
{
    static const char text[] = "ada:first\nsecond\nspiffe://x/y z:third=\n# no:comment\n"
                               "\xC3\xBC:fourth";
    struct files *f = *state;

    assert_int_equal(read_text(f, text, strlen(text)), 0);
    assert_int_equal(f->tokens.n, 4);
    assert_string_equal(bow__tokens_first(&f->tokens), "first");
    expect_subject(f, "first", "ada");
    expect_subject(f, "second", "");
    expect_subject(f, "third=", "spiffe://x/y z");
    expect_subject(f, "fourth", "\xC3\xBC");
    assert_false(has(f, "ada"));
    assert_false(has(f, "ada:first"));
    assert_false(has(f, "comment"));
}

static void test_tokens_after_lines_that_are_skipped_keep_their_subjects(void **state)
{
    static const char text[] = "\n\n#\n  a:b\r\n\n\t c:d \n";
    struct files *f = *state;

    assert_int_equal(read_text(f, text, strlen(text)), 0);
    expect_subject(f, "b", "a");
    expect_subject(f, "d", "c");
}

static void test_tokens_of_a_file_are_found(void **state)
{
    static const char text[] = "# ours\n\nfirst\r\n  second== \nthird";
    struct files *f = *state;

    assert_int_equal(read_text(f, text, strlen(text)), 0);
    assert_int_equal(f->tokens.n, 3);
    assert_true(has(f, "first"));
    assert_true(has(f, "second=="));
    assert_true(has(f, "third"));
}

static void test_tokens_that_only_begin_alike_are_not_found(void **state)
{
    struct files *f = *state;

    assert_int_equal(read_text(f, "first\nsecond\n", 13), 0);
    assert_false(has(f, "firs"));
    assert_false(has(f, "firstf"));
    assert_false(has(f, "firstfirst"));
    assert_false(has(f, "Xirst"));
    assert_false(has(f, "firsX"));
    assert_false(has(f, ""));
    assert_false(has(f, "ours"));
}

static void expect_refused(struct files *f, const char *text, size_t len, int rc, const char *words)
{
    assert_int_equal(read_text(f, text, len), rc);
    assert_int_equal(f->error.error, rc);
    assert_non_null(strstr(f->error.text, f->path));
    if (strstr(f->error.text, words) == NULL) {
        fail_msg("%s", f->error.text);
    }
    assert_null(f->tokens.text);
}

static void test_tokens_of_a_wrong_file_are_refused(void **state)
{
    struct files *f = *state;
    char *large = malloc(BOW_BEARER_FILE_BYTES + 1);

    assert_non_null(large);
    memset(large, '\n', BOW_BEARER_FILE_BYTES + 1);
    expect_refused(f, "", 0, -ENODATA, "it has no token");
    expect_refused(f, "# nothing\n", 10, -ENODATA, "it has no token");
    expect_refused(f, "good\nnot good\n", 14, -EBADMSG, "line 2 is not a token");
    expect_refused(f, "good\n\n\xC3\xBC\n", 9, -EBADMSG, "line 3 is not a token");
    expect_refused(f, ":good\n", 6, -EBADMSG, "line 1 is not a token, nor SUBJECT:TOKEN");
    expect_refused(f, "ada:\n", 5, -EBADMSG, "line 1");
    expect_refused(f, "ada: good\n", 10, -EBADMSG, "line 1");
    expect_refused(f, "a\x01:good\n", 8, -EBADMSG, "line 1");
    expect_refused(f, "a\xFF:good\n", 8, -EBADMSG, "line 1");
    expect_refused(f, "====\n", 5, -EBADMSG, "line 1 is not a token");
    expect_refused(f, large, BOW_BEARER_FILE_BYTES + 1, -EFBIG, "BOW_BEARER_FILE_BYTES");
    memset(large, 'a', BOW_BEARER_FILE_BYTES);
    large[BOW_BEARER_SUBJECT_BYTES] = ':';
    expect_refused(f, large, BOW_BEARER_SUBJECT_BYTES + 4, -EBADMSG, "line 1");
    large[BOW_BEARER_SUBJECT_BYTES] = 'a';
    expect_refused(f, large, BOW_BEARER_FILE_BYTES, -EBADMSG, "line 1");
    free(large);
    unlink(f->path);
    assert_int_equal(bow__tokens_read(&f->tokens, f->context, f->path, &f->error), -ENOENT);
    assert_non_null(strstr(f->error.text, "is the path right?"));
    assert_non_null(strstr(f->error.text, "ENOENT"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tokens_of_a_file_are_found),
        TEST(test_tokens_name_their_subjects),
        TEST(test_tokens_after_lines_that_are_skipped_keep_their_subjects),
        TEST(test_tokens_that_only_begin_alike_are_not_found),
        TEST(test_tokens_of_a_wrong_file_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
