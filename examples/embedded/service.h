/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_EMBEDDED_SERVICE_H
#define BOWLINE_EXAMPLES_EMBEDDED_SERVICE_H

/*
 * A greeter on a loop that has no thread and is not run here: whoever owns the
 * program's own loop polls service_fd(), and calls service_turn() when it is
 * readable. Sockets, timers and the wake-up of a signal all arrive through it.
 */

#include <stdbool.h>

struct service; /* one a process: signal handlers need it */

/** Make everything, listen, and print where. NULL when that failed; it has been said why. May be
 * called before daemon(). */
struct service *service_start(const char *address);
int service_fd(const struct service *service);
/** Do what is due now, without waiting. False when the service has ended. */
bool service_turn(struct service *service);
void service_free(struct service *service);

#endif
