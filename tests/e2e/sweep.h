/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_SWEEP_H
#define BOWLINE_TESTS_E2E_SWEEP_H

/*
 * Whole scenarios with each allocation failing in turn, on virtual time in one thread:
 *
 *     sweep_test.c       the scenarios, and what holds after each
 *     sweep_service.c    the handlers
 */

#include "protos/echo.bow.h"
#include "protos/kinds.bow.h"

#include <bowline/executor.h>
#include <bowline/testing.h>
#include <errno.h>

struct sweep {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct bow_executor *executor;
    int (*prepare)(struct sweep *sweep, struct bow_server *server); /* before the start; or NULL */
    int n_started;                                                  /* calls with a callback */
    int n_done;
    int n_ok;      /* calls that ended with OK */
    int n_short;   /* with want of memory, in whatever form */
    int n_strange; /* with anything else */
    char strange[256];
};

int sweep_serve(struct bow_server *server, void *user);

#endif
