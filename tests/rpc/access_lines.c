/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lines of an access log; see the header. */

#include "access_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void access_lines_init(struct access_lines *lines, struct calls *calls)
{
    *lines = (struct access_lines){.calls = calls};
}

void access_lines_add(const char *line, size_t len, void *user)
{
    struct access_lines *lines = user;

    assert_int_equal(strlen(line), len);
    pthread_mutex_lock(&lines->calls->lock);
    size_t at = strlen(lines->text);
    (void)snprintf(lines->text + at, sizeof(lines->text) - at, "%s\n", line);
    lines->n++;
    pthread_cond_broadcast(&lines->calls->changed);
    pthread_mutex_unlock(&lines->calls->lock);
}
