/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names of the status codes.
 */

#include <bowline/status.h>
#include <stddef.h>

const char *bow_code_name(enum bow_code code)
{
    static const char *const names[] = {
        [BOW_OK] = "OK",
        [BOW_CANCELLED] = "CANCELLED",
        [BOW_UNKNOWN] = "UNKNOWN",
        [BOW_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [BOW_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [BOW_NOT_FOUND] = "NOT_FOUND",
        [BOW_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [BOW_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [BOW_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [BOW_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [BOW_ABORTED] = "ABORTED",
        [BOW_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [BOW_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [BOW_INTERNAL] = "INTERNAL",
        [BOW_UNAVAILABLE] = "UNAVAILABLE",
        [BOW_DATA_LOSS] = "DATA_LOSS",
        [BOW_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };
    size_t number = (size_t)code;

    return number < sizeof(names) / sizeof(names[0]) ? names[number] : "UNKNOWN_CODE";
}
