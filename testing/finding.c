/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a test finds wrong at its end: said at once, and counted. */

#include "testing/test.h"

#include <stdarg.h>
#include <stdio.h>

void bow__test_find(struct bow_test *test, const char *format, ...)
{
    va_list args;

    test->n_findings++;
    fprintf(stderr, "bowline test: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
}
