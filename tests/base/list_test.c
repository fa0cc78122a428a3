/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The intrusive list.
 */

#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    int number;
    struct bow__link link;
};

static void test_list_keeps_order_and_removes_twice(void **state)
{
    struct bow__link head;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};

    (void)state;
    bow__list_init(&head);
    assert_true(bow__list_is_empty(&head));
    assert_null(bow__list_pop_front(&head));
    bow__list_push_back(&head, &items[1].link);
    bow__list_push_back(&head, &items[2].link);
    bow__list_push_front(&head, &items[0].link);
    assert_int_equal(BOW__CONTAINER(head.next, struct item, link)->number, 0);
    bow__list_remove(&items[1].link);
    bow__list_remove(&items[1].link);
    assert_ptr_equal(bow__list_pop_front(&head), &items[0].link);
    assert_ptr_equal(bow__list_pop_front(&head), &items[2].link);
    assert_true(bow__list_is_empty(&head));
}

static void test_list_moved_to_the_front_keeps_both_orders(void **state)
{
    struct bow__link to;
    struct bow__link from;
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};

    (void)state;
    bow__list_init(&to);
    bow__list_init(&from);
    bow__list_push_back(&to, &items[2].link);
    bow__list_push_back(&to, &items[3].link);
    bow__list_move_front(&to, &from);
    bow__list_push_back(&from, &items[0].link);
    bow__list_push_back(&from, &items[1].link);
    bow__list_move_front(&to, &from);
    assert_true(bow__list_is_empty(&from));
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(bow__list_pop_front(&to), &items[i].link);
    }
    assert_true(bow__list_is_empty(&to));
    assert_ptr_equal(to.prev, &to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_keeps_order_and_removes_twice),
        cmocka_unit_test(test_list_moved_to_the_front_keeps_both_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
