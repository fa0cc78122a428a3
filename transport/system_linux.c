/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operating system behind struct bow_system: its clock and its random bytes.
 */

#include <bowline/system.h>
#include <errno.h>
#include <sys/random.h>
#include <time.h>

static uint64_t now_ns(void *user)
{
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int random_bytes(void *user, void *bytes, size_t len)
{
    uint8_t *at = bytes;

    (void)user;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

const struct bow_system *bow_system_default(void)
{
    static const struct bow_system system = {
        .size = sizeof(system),
        .now_ns = now_ns,
        .random = random_bytes,
    };

    return &system;
}
