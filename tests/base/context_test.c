/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The context: options old and new, references, the log sink.
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "tests/support/alloc.h"

#include <bowline/system.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_context_by_default_uses_malloc_and_the_system(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    (void)state;
    assert_int_equal(bow_context_new(&options, &context), 0);
    assert_int_equal(bow_context_bytes(context), 0);
    assert_int_equal(bow_context_max_bytes(context), 0);
    assert_ptr_equal(bow__context_system(context), bow_system_default());
    char *text = bow__dup(context, "loop", 4);
    assert_string_equal(text, "loop");
    text = bow__resize(context, text, 5, 4096);
    assert_string_equal(text, "loop");
    bow__free(context, text, 4096);
    assert_int_equal(bow_context_bytes(context), 0);
    assert_null(bow_context_unref(context));
}

static void test_context_of_a_custom_system_returns_it(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();
    struct bow_context *context = NULL;

    (void)state;
    options.system = &system;
    assert_int_equal(bow_context_new(&options, &context), 0);
    assert_ptr_equal(bow__context_system(context), &system);
    assert_null(bow_context_unref(context));
}

static void test_context_options_of_an_older_header_keep_defaults(void **state)
{
    struct test_alloc alloc;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    (void)state;
    test_alloc_init(&alloc);
    options.size = offsetof(struct bow_context_options, max_bytes);
    options.allocator = &alloc.allocator;
    options.max_bytes = 1; /* beyond the size: not seen */
    assert_int_equal(bow_context_new(&options, &context), 0);
    assert_int_equal(bow_context_max_bytes(context), 0);
    test_context_end(context, &alloc);
}

static void assert_refused(const struct bow_context_options *options)
{
    struct bow_context *context = NULL;

    assert_int_equal(bow_context_new(options, &context), -EINVAL);
    assert_null(context);
}

static void test_context_options_of_unknown_size_are_refused(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    (void)state;
    options.size = sizeof(options) + 1;
    assert_refused(&options);
    options.size = sizeof(size_t) - 1;
    assert_refused(&options);
    options.size = 0;
    assert_refused(&options);
}

static void test_context_without_options_has_the_defaults(void **state)
{
    struct bow_context *context = NULL;

    (void)state;
    assert_int_equal(bow_context_new(NULL, &context), 0);
    assert_int_equal(bow_context_max_bytes(context), 0);
    assert_int_equal(bow_context_bytes(context), 0);
    assert_null(bow_context_unref(context));
}

static void test_context_options_with_a_partial_allocator_are_refused(void **state)
{
    struct test_alloc alloc;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    (void)state;
    options.allocator = &alloc.allocator;
    test_alloc_init(&alloc);
    alloc.allocator.alloc = NULL;
    assert_refused(&options);
    test_alloc_init(&alloc);
    alloc.allocator.resize = NULL;
    assert_refused(&options);
    test_alloc_init(&alloc);
    alloc.allocator.free = NULL;
    assert_refused(&options);
}

static void test_context_options_with_another_systems_size_are_refused(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();

    (void)state;
    options.system = &system;
    system.size--;
    assert_refused(&options);
}

static void test_context_new_without_memory_says_so(void **state)
{
    struct test_alloc alloc;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    (void)state;
    test_alloc_init(&alloc);
    alloc.fail_at = 1;
    options.allocator = &alloc.allocator;
    assert_int_equal(bow_context_new(&options, &context), -ENOMEM);
    assert_null(context);
    assert_int_equal(alloc.n_blocks, 0);
}

static void test_context_lives_until_the_last_reference(void **state)
{
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_ptr_equal(bow_context_ref(context), context);
    assert_null(bow_context_unref(context));
    assert_int_equal(alloc.n_blocks, 1);
    assert_null(bow_context_unref(context));
    assert_int_equal(alloc.n_blocks, 0);
    assert_null(bow_context_unref(NULL));
}

struct sink {
    int n_lines;
    enum bow_log_level level;
    char line[1024];
};

static void record(enum bow_log_level level, const char *line, void *user)
{
    struct sink *sink = user;

    sink->n_lines++;
    sink->level = level;
    snprintf(sink->line, sizeof(sink->line), "%s", line);
}

static struct bow_context *new_logging(struct sink *sink, enum bow_log_level level)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    *sink = (struct sink){0};
    options.log = record;
    options.log_user = sink;
    options.log_level = level;
    assert_int_equal(bow_context_new(&options, &context), 0);
    return context;
}

static void test_log_reaches_the_sink_up_to_its_level(void **state)
{
    struct sink sink;
    struct bow_context *context = new_logging(&sink, BOW_LOG_WARNING);

    (void)state;
    bow__log(context, BOW_LOG_INFO, "not seen");
    assert_int_equal(sink.n_lines, 0);
    bow__log(context, BOW_LOG_WARNING, "accept: %s", "EMFILE");
    assert_int_equal(sink.n_lines, 1);
    assert_int_equal(sink.level, BOW_LOG_WARNING);
    assert_string_equal(sink.line, "accept: EMFILE");
    bow__log(context, BOW_LOG_ERROR, "seen");
    assert_int_equal(sink.n_lines, 2);
    assert_null(bow_context_unref(context));
}

static void test_log_of_a_long_line_is_cut(void **state)
{
    struct sink sink;
    struct bow_context *context = new_logging(&sink, BOW_LOG_DEBUG);

    (void)state;
    bow__log(context, BOW_LOG_DEBUG, "%600s", "x");
    assert_int_equal(strlen(sink.line), 511);
    assert_string_equal(sink.line + 508, "...");
    assert_null(bow_context_unref(context));
}

static void test_log_without_a_sink_is_dropped(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    (void)state;
    assert_int_equal(bow_context_new(&options, &context), 0);
    bow__log(context, BOW_LOG_ERROR, "nobody hears");
    assert_null(bow_context_unref(context));
}

static void test_context_dropped_with_memory_out_logs_how_much(void **state)
{
    struct sink sink;
    struct test_alloc alloc;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    (void)state;
    sink = (struct sink){0};
    test_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    options.log = record;
    options.log_user = &sink;
    assert_int_equal(bow_context_new(&options, &context), 0);
    void *leaked = bow__alloc(context, 42);
    assert_null(bow_context_unref(context));
    assert_int_equal(sink.level, BOW_LOG_ERROR);
    assert_non_null(strstr(sink.line, "42 bytes still in use"));
    alloc.allocator.free(alloc.allocator.user, leaked, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_by_default_uses_malloc_and_the_system),
        cmocka_unit_test(test_context_of_a_custom_system_returns_it),
        cmocka_unit_test(test_context_options_of_an_older_header_keep_defaults),
        cmocka_unit_test(test_context_options_of_unknown_size_are_refused),
        cmocka_unit_test(test_context_without_options_has_the_defaults),
        cmocka_unit_test(test_context_options_with_a_partial_allocator_are_refused),
        cmocka_unit_test(test_context_options_with_another_systems_size_are_refused),
        cmocka_unit_test(test_context_new_without_memory_says_so),
        cmocka_unit_test(test_context_lives_until_the_last_reference),
        cmocka_unit_test(test_log_reaches_the_sink_up_to_its_level),
        cmocka_unit_test(test_log_of_a_long_line_is_cut),
        cmocka_unit_test(test_log_without_a_sink_is_dropped),
        cmocka_unit_test(test_context_dropped_with_memory_out_logs_how_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
