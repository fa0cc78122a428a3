/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What many idle connections cost, each having been used once (L58).
 *
 *     idle_connections_test CONNECTIONS
 */

#include "tests/support/crowd.h"

#include <stdlib.h>

#define MAX_OWN_BYTES 752

static int n_connections = 1000;

static void test_channel_idle_ones_hold_little_and_leave_nothing(void **state)
{
    struct crowd crowd;

    (void)state;
    crowd_begin(&crowd, NULL, NULL, NULL);
    crowd_come(&crowd, 1); /* what is the loop's own is there now */
    size_t before = bow_context_bytes(crowd.net.t.context);
    uint64_t took_ns = crowd_come(&crowd, n_connections);
    size_t own = (bow_context_bytes(crowd.net.t.context) - before) / (size_t)n_connections;
    print_message("%d connections: accepted and answered once, %.0f a second\n", n_connections,
                  n_connections * 1e9 / (double)took_ns);
    print_message("an idle one holds %zu bytes\n", own);
    assert_int_equal(crowd.n_accepted, 1 + n_connections);
    assert_int_equal(crowd.n_ended, 0);
    assert_in_range(own, 1, MAX_OWN_BYTES);
    crowd_end(&crowd);
    loops_end(&crowd.net.t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_idle_ones_hold_little_and_leave_nothing),
    };

    if (argc > 1) {
        n_connections = atoi(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
