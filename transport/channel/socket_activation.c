/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Listening sockets from the service manager: what sd_listen_fds(3) describes. Reads the
 * environment and changes nothing. Knows nothing of what is done with them.
 */

#include <bowline/channel.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Below are standard input, output and error. */
#define FIRST_FD 3

/* A decimal number from 0 to INT_MAX - FIRST_FD, and nothing else; or -EINVAL. */
static int parse_number(const char *text)
{
    char *end = NULL;

    errno = 0;
    long number = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        number > INT_MAX - FIRST_FD) {
        return -EINVAL;
    }
    return (int)number;
}

int bow_inherited_fds(void)
{
    const char *pid_text = getenv("LISTEN_PID");
    const char *fds_text = getenv("LISTEN_FDS");

    if (pid_text == NULL || fds_text == NULL) {
        return 0;
    }
    int pid = parse_number(pid_text);
    if (pid < 0) {
        return pid;
    }
    /* The variables are inherited further than the descriptors. */
    return pid == getpid() ? parse_number(fds_text) : 0;
}

int bow_inherited_fd(const char *name)
{
    const char *names = getenv("LISTEN_FDNAMES");
    size_t len = strlen(name);

    int n = bow_inherited_fds();
    if (n < 0) {
        return n;
    }
    for (int i = 0; i < n && names != NULL; i++) {
        const char *colon = strchr(names, ':');
        size_t this_len = colon != NULL ? (size_t)(colon - names) : strlen(names);
        if (this_len == len && memcmp(names, name, len) == 0) {
            return FIRST_FD + i;
        }
        names = colon != NULL ? colon + 1 : NULL;
    }
    return -ENOENT;
}
