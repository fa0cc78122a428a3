/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_UNIT_TEST_PATIENT_H
#define BOWLINE_EXAMPLES_UNIT_TEST_PATIENT_H

/* A greeter that thinks for five seconds before it answers. It is what unit_test.c tests. */

#include "greeter.bow.h"

struct patient {
    int n_waiting; /* calls that it thinks about */
};

/** Add the service to a server; keeps `patient`. */
int patient_serve(struct bow_server *server, struct patient *patient);

#endif
