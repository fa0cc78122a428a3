/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writing to somebody else's descriptor without waiting, and without a signal when nobody reads
 * it any more. Knows nothing of lines.
 */

#include "rpc/interceptors/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int duplicate(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy >= 0 ? copy : -errno;
}

/* The link in /proc leads to the pipe or terminal itself, so this is an open of its own. */
static int open_anew(int fd)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int copy = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (copy >= 0) {
        return copy;
    }
    int error = errno;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) != 0 ? duplicate(fd) : -error;
}

int bow__log_writer_open(struct bow__log_writer *writer, int fd)
{
    struct stat what;

    if (fstat(fd, &what) < 0) {
        return -errno;
    }
    bool is_file = S_ISREG(what.st_mode);
    writer->is_socket = S_ISSOCK(what.st_mode);
    writer->may_signal = !is_file && !writer->is_socket;
    writer->fd = writer->may_signal ? open_anew(fd) : duplicate(fd);
    return writer->fd < 0 ? writer->fd : 0;
}

void bow__log_writer_close(struct bow__log_writer *writer)
{
    (void)close(writer->fd);
    writer->fd = -1;
}

static ssize_t write_once(const struct bow__log_writer *writer, const char *bytes, size_t len)
{
    ssize_t n = writer->is_socket ? send(writer->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : write(writer->fd, bytes, len);

    return n >= 0 ? n : -errno;
}

/* The disposition is the program's: the signal is kept off this thread, and taken away again
 * unless it was there before. */
static ssize_t write_quietly(const struct bow__log_writer *writer, const char *bytes, size_t len)
{
    const struct timespec at_once = {0, 0};
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = write_once(writer, bytes, len);
    if (n == -EPIPE && !was_pending) {
        (void)sigtimedwait(&pipe_signal, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n;
}

ssize_t bow__log_writer_write(struct bow__log_writer *writer, const char *bytes, size_t len)
{
    ssize_t n = 0;

    do {
        n = writer->may_signal ? write_quietly(writer, bytes, len) : write_once(writer, bytes, len);
    } while (n == -EINTR);
    return n == -EWOULDBLOCK ? -EAGAIN : n;
}
