/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_LOG_WRITER_H
#define BOWLINE_RPC_INTERCEPTORS_LOG_WRITER_H

/*
 * A descriptor that lines are written to without ever waiting, whatever it is and however its
 * owner uses it: its own flags, which others may share, are not touched.
 *
 *     regular file      a duplicate; it takes everything
 *     socket            a duplicate, asked not to wait with each message
 *     pipe, terminal    opened anew, non-blocking, which gives flags of our own
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bow__log_writer {
    int fd;
    bool is_socket;
    bool may_signal; /* a write may raise SIGPIPE */
};

/** Returns 0 or a negative errno: -EACCES for a pipe of another user's that would block. */
int bow__log_writer_open(struct bow__log_writer *writer, int fd);
void bow__log_writer_close(struct bow__log_writer *writer);

/** Returns how many bytes were taken; -EAGAIN when none is now; another negative errno. */
ssize_t bow__log_writer_write(struct bow__log_writer *writer, const char *bytes, size_t len);

#endif
