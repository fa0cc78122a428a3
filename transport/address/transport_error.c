/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What to say to people when binding, resolving or connecting failed, and what
 * they can try. Knows nothing of how it came about.
 */

#include "transport/address/transport_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Addresses come from files and arguments; a name may be as long as it likes. */
#define SHOWN_BYTES 160

static const char *advice(const char *stage, int error)
{
    bool connecting = strcmp(stage, "connecting") == 0;
    bool reading = strncmp(stage, "reading", strlen("reading")) == 0;

    switch (-error) {
    case ECONNREFUSED:
        return "is the server running there?";
    case ENOENT:
        return connecting ? "is the server running, and is the path right?"
               : reading  ? "is the path right?"
                          : "does the directory exist?";
    case EADDRINUSE:
        return "is another server running there?";
    case EADDRNOTAVAIL:
        return "does this machine have that address?";
    case EACCES:
    case EPERM:
        return connecting ? "does a firewall or the socket's mode forbid it?"
               : reading  ? "may the user of this process read it?"
                          : "ports below 1024 and foreign directories need privilege";
    case ETIMEDOUT:
        return "is the host up, and does a firewall drop packets?";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "is there a route to that network?";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    default:
        return NULL;
    }
}

int bow__transport_error(struct bow_transport_error *ret_error, const char *stage,
                         const char *address, int error, const char *detail)
{
    struct bow__text text;

    if (ret_error == NULL) {
        return error;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "%s %s", stage, strcmp(stage, "connecting") == 0 ? "to " : "");
    bow__text_escape(&text, (struct bow_slice){(const uint8_t *)address, strlen(address)},
                     SHOWN_BYTES);
    bow__text_printf(&text, ": ");
    bow__text_errno(&text, error);
    if (detail == NULL) {
        detail = advice(stage, error);
    }
    if (detail != NULL) {
        bow__text_printf(&text, ": %s", detail);
    }
    ret_error->stage = stage;
    ret_error->error = error;
    snprintf(ret_error->text, sizeof(ret_error->text), "%s", text.bytes);
    return error;
}
