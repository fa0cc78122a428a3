/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The life of a test, and what is left at its end. */

#include "testing/test.h"
#include "base/misuse.h"
#include "base/options.h"

#include <stdlib.h>

#define MAX_SHOWN 10

static int make_context(struct bow_test *test, const struct bow_test_options *given)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    bow__test_alloc_init(&test->alloc);
    test->alloc.traces = true;
    options.allocator = &test->alloc.allocator;
    options.system = &test->fake.system;
    options.max_bytes = given->max_bytes;
    options.log = given->log;
    options.log_user = given->log_user;
    options.log_level = given->log_level;
    int rc = bow_context_new(&options, &test->context);
    if (rc == 0) {
        bow__look_for_misuse(test->context);
    }
    return rc;
}

static int make_loop(struct bow_test *test)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    options.name = "bow-test";
    int rc = bow_loop_new(test->context, &options, &test->loop);
    /* The thread that runs it first is the loop's. */
    return rc == 0 ? bow_loop_run_once(test->loop, 0) : rc;
}

int bow_test_new(const struct bow_test_options *given, struct bow_test **ret_test)
{
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;

    int rc = given != NULL ? bow__options_read(&options, sizeof(options), given) : 0;
    if (rc < 0) {
        return rc;
    }
    struct bow_test *test = calloc(1, sizeof(*test));
    if (test == NULL) {
        return -ENOMEM;
    }
    bow__list_init(&test->pairs);
    bow__test_clock_init(test);
    rc = make_context(test, &options);
    if (rc < 0) {
        free(test);
        return rc;
    }
    rc = bow__inproc_faults_init(&test->faults, test->context);
    if (rc == 0) {
        rc = make_loop(test);
    }
    if (rc < 0) {
        (void)bow_test_end(test);
        return rc;
    }
    *ret_test = test;
    return 0;
}

struct bow_context *bow_test_context(const struct bow_test *test)
{
    return test->context;
}

struct bow_loop *bow_test_loop(const struct bow_test *test)
{
    return test->loop;
}

/* A loop that somebody refers to still has to end, so that its channels go. */
static void end_loop(struct bow_test *test)
{
    if (test->loop == NULL) {
        return;
    }
    if (bow_loop_shutdown(test->loop, 0, 0) < 0 || bow_loop_run(test->loop) < 0) {
        bow__test_find(test, "the loop does not end: is this inside one of its callbacks?");
    }
    test->loop = bow_loop_unref(test->loop);
}

static void look_at_memory(struct bow_test *test)
{
    size_t n_bytes = bow_context_bytes(test->context);

    if (n_bytes > 0) {
        bow__test_find(test, "%zu bytes are left:", n_bytes);
        bow__test_alloc_print(&test->alloc, stderr, MAX_SHOWN);
    }
}

int bow_test_end(struct bow_test *test)
{
    if (test == NULL) {
        return 0;
    }
    bow__test_free_pairs(test);
    end_loop(test);
    look_at_memory(test);
    int n_findings = test->n_findings;
    test->n_findings = 0;
    if (bow_context_bytes(test->context) == 0) {
        bow_context_unref(test->context);
        bow__inproc_faults_fini(&test->faults);
        free(test);
    } /* else whoever was forgotten still refers to all of it */
    return n_findings;
}
