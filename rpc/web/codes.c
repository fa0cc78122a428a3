/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connect's table of codes: https://connectrpc.com/docs/protocol#error-codes */

#include "rpc/web/codes.h"

#include <stddef.h>

static const struct {
    const char *name;
    const char *http_status;
} codes[] = {
    [BOW_CANCELLED] = {"canceled", "499"},
    [BOW_UNKNOWN] = {"unknown", "500"},
    [BOW_INVALID_ARGUMENT] = {"invalid_argument", "400"},
    [BOW_DEADLINE_EXCEEDED] = {"deadline_exceeded", "504"},
    [BOW_NOT_FOUND] = {"not_found", "404"},
    [BOW_ALREADY_EXISTS] = {"already_exists", "409"},
    [BOW_PERMISSION_DENIED] = {"permission_denied", "403"},
    [BOW_RESOURCE_EXHAUSTED] = {"resource_exhausted", "429"},
    [BOW_FAILED_PRECONDITION] = {"failed_precondition", "400"},
    [BOW_ABORTED] = {"aborted", "409"},
    [BOW_OUT_OF_RANGE] = {"out_of_range", "400"},
    [BOW_UNIMPLEMENTED] = {"unimplemented", "501"},
    [BOW_INTERNAL] = {"internal", "500"},
    [BOW_UNAVAILABLE] = {"unavailable", "503"},
    [BOW_DATA_LOSS] = {"data_loss", "500"},
    [BOW_UNAUTHENTICATED] = {"unauthenticated", "401"},
};

static size_t index_of(enum bow_code code)
{
    size_t index = (size_t)code;

    return index < sizeof(codes) / sizeof(codes[0]) && codes[index].name != NULL ? index
                                                                                 : BOW_UNKNOWN;
}

const char *bow__connect_code_name(enum bow_code code)
{
    return codes[index_of(code)].name;
}

const char *bow__connect_http_status(enum bow_code code)
{
    return codes[index_of(code)].http_status;
}
