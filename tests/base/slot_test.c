/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Slots of the context: one object for all who ask, ended with the context.
 */

#include "base/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct thing {
    struct bow_context *context;
    int value;
};

static int n_ended;

static void thing_init(void *object, struct bow_context *context)
{
    struct thing *thing = object;
    assert_int_equal(thing->value, 0);
    thing->context = context;
    thing->value = 7;
}

static void thing_fini(void *object)
{
    struct thing *thing = object;
    /* the context still answers */
    assert_int_equal(bow_context_max_bytes(thing->context), 0);
    n_ended++;
}

static const struct bow__slot_ops thing_ops = {
    .size = sizeof(struct thing), .init = thing_init, .fini = thing_fini};

static const struct bow__slot_ops threaded_ops = {
    .size = sizeof(struct thing), .has_thread = true, .init = thing_init, .fini = thing_fini};

static void test_slot_asked_twice_gives_one_object(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    (void)state;
    n_ended = 0;

    assert_int_equal(bow_context_new(&options, &context), 0);
    struct thing *first = bow__context_slot(context, BOW__SLOT_RESOLVER, &thing_ops);
    assert_non_null(first);
    assert_int_equal(first->value, 7);
    assert_ptr_equal(bow__context_slot(context, BOW__SLOT_RESOLVER, &thing_ops), first);
    assert_int_equal(bow_context_bytes(context), 0);
    assert_int_equal(n_ended, 0);
    bow_context_unref(context);
    assert_int_equal(n_ended, 1);
}

static void test_slot_never_asked_ends_nothing(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    (void)state;
    n_ended = 0;

    assert_int_equal(bow_context_new(&options, &context), 0);
    bow_context_unref(context);
    assert_int_equal(n_ended, 0);
}

static int child_status(struct bow_context *context, struct thing *shared, struct thing *threaded)
{
    int status = 0;

    pid_t pid = fork();
    if (pid == 0) {
        struct thing *mine = bow__context_slot(context, BOW__SLOT_RESOLVER, &threaded_ops);
        bool is_good = bow__context_slot(context, BOW__SLOT_INPROC, &thing_ops) == shared &&
                       mine != NULL && mine != threaded && mine->value == 7 &&
                       bow__context_slot(context, BOW__SLOT_RESOLVER, &threaded_ops) == mine;
        n_ended = 0;
        bow_context_unref(context);
        _exit(!is_good || n_ended != 2); /* the parent's was not ended */
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void test_slot_with_a_thread_is_made_anew_in_a_child(void **state)
{
    struct bow_context *context = NULL;
    (void)state;

    assert_int_equal(bow_context_new(NULL, &context), 0);
    struct thing *shared = bow__context_slot(context, BOW__SLOT_INPROC, &thing_ops);
    struct thing *threaded = bow__context_slot(context, BOW__SLOT_RESOLVER, &threaded_ops);
    assert_int_equal(child_status(context, shared, threaded), 0);
    assert_ptr_equal(bow__context_slot(context, BOW__SLOT_RESOLVER, &threaded_ops), threaded);
    bow_context_unref(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slot_asked_twice_gives_one_object),
        cmocka_unit_test(test_slot_never_asked_ends_nothing),
        cmocka_unit_test(test_slot_with_a_thread_is_made_anew_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
