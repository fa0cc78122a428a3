/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_HTTP_ANSWER_H
#define BOWLINE_TOOLS_BOWLINE_HTTP_ANSWER_H

/*
 * An answer of HTTP/1.1 to a GET that asked for the connection to be closed: the head's few fields
 * that matter here, and the body by its length, in chunks, or until the connection's end. Without
 * I/O: the bytes that have come so far are looked at again when there are more.
 */

#include <bowline/slice.h>
#include <stdbool.h>

#define HTTP_MAX_HEAD_BYTES ((size_t)16 << 10)
#define HTTP_MAX_BODY_BYTES ((size_t)16 << 20)

struct http_answer {
    int status;
    struct bow_slice body;
};

/**
 * Look at all that has come. `is_over`: nothing more will. A body in chunks is put together in
 * place, so that `bytes` is of no use for a second look once the answer is whole.
 *
 * Returns: 0, and `*ret_answer` lies in `bytes`; -EAGAIN: there is more to come; -EBADMSG: that is
 * no answer of HTTP/1, or it is over too early; -EMSGSIZE: it is larger than the limits above
 */
int http_answer_read(char *bytes, size_t len, bool is_over, struct http_answer *ret_answer);

#endif
