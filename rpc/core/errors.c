/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Errors of the environment as status codes, and their texts.
 */

#include "rpc/core/errors.h"

#include <errno.h>
#include <inttypes.h>

struct code_of {
    int error;
    enum bow_code code;
};

enum bow_code bow__code_from_errno(int error)
{
    static const struct code_of codes[] = {
        {0, BOW_OK},
        {ENOMEM, BOW_RESOURCE_EXHAUSTED},
        {EAGAIN, BOW_RESOURCE_EXHAUSTED},
        {EMFILE, BOW_RESOURCE_EXHAUSTED},
        {ENFILE, BOW_RESOURCE_EXHAUSTED},
        {EMSGSIZE, BOW_RESOURCE_EXHAUSTED},
        {ECANCELED, BOW_CANCELLED},
        {ETIMEDOUT, BOW_DEADLINE_EXCEEDED},
        {EBADMSG, BOW_INTERNAL},
        {EPROTO, BOW_INTERNAL},
        {EINVAL, BOW_INVALID_ARGUMENT},
        {EDEADLK, BOW_FAILED_PRECONDITION},
        {EBUSY, BOW_FAILED_PRECONDITION},
        {ECHILD, BOW_FAILED_PRECONDITION},
        {EPERM, BOW_PERMISSION_DENIED},
        {EACCES, BOW_PERMISSION_DENIED},
        {EEXIST, BOW_ALREADY_EXISTS},
        {ENOSYS, BOW_UNIMPLEMENTED},
        {ENOTSUP, BOW_UNIMPLEMENTED},
    };
    int positive = error < 0 ? -error : error;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].error == positive) {
            return codes[i].code;
        }
    }
    /* What is left are sockets, names and routes: another try may succeed. */
    return BOW_UNAVAILABLE;
}

void bow__text_duration(struct bow__text *text, uint64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{UINT64_C(1000000000), "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;

    while (i < 3 && ns < units[i].ns) {
        i++;
    }
    uint64_t tenths = ns % units[i].ns / (units[i].ns >= 10 ? units[i].ns / 10 : 1);
    if (units[i].ns == 1 || tenths == 0) {
        bow__text_printf(text, "%" PRIu64 " %s", ns / units[i].ns, units[i].name);
        return;
    }
    bow__text_printf(text, "%" PRIu64 ".%" PRIu64 " %s", ns / units[i].ns, tenths, units[i].name);
}

size_t bow__utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    while (max > 0 && ((uint8_t)text[max] & 0xC0) == 0x80) {
        max--;
    }
    return max;
}
