/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A server's session that is fed by hand. */
#include "tests/rpc/http2_fed_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int fed_server_setup(void **state)
{
    struct fed_server *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    *state = t;
    return 0;
}

int fed_server_teardown(void **state)
{
    struct fed_server *t = *state;

    pair_end(&t->pair);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

int fed_server_feed(struct fed_server *t)
{
    int rc = side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX);

    t->in.len = 0;
    t->out.len +=
        side_drain(&t->pair.server, t->out.data + t->out.len, sizeof(t->out.data) - t->out.len);
    bytes_print(&t->out, t->text, FED_TEXT_BYTES);
    return rc;
}

bool fed_server_says(const struct fed_server *t, const char *part)
{
    return strstr(t->text, part) != NULL;
}
