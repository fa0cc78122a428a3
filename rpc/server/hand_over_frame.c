/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The frames of a hand-over, read and written on a Unix socket with the descriptors that they
 * carry. Knows nothing of who says what when.
 */

#include "rpc/server/hand_over_frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t magic[4] = {'B', 'O', 'W', 'H'};

static void put(uint8_t *bytes, uint64_t number, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)(number >> (8 * (n - 1 - i)));
    }
}

static uint64_t get(const uint8_t *bytes, size_t n)
{
    uint64_t number = 0;

    for (size_t i = 0; i < n; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* Reading */

void bow__hand_over_reader_init(struct bow__hand_over_reader *reader)
{
    reader->len = 0;
    reader->fd = -1;
}

void bow__hand_over_reader_fini(struct bow__hand_over_reader *reader)
{
    if (reader->fd >= 0) {
        close(reader->fd);
    }
    reader->fd = -1;
}

/* One is what a frame carries: of several the last is kept. */
static void keep_descriptors(struct bow__hand_over_reader *reader, struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t n = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int), i = 0; i < n; i++) {
            bow__hand_over_reader_fini(reader);
            memcpy(&reader->fd, CMSG_DATA(at) + i * sizeof(int), sizeof(int));
        }
    }
}

static int read_some(int socket, struct bow__hand_over_reader *reader, size_t want)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part = {reader->bytes + reader->len, want - reader->len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;

    do {
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    keep_descriptors(reader, &message);
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        return -EMFILE;
    }
    reader->len += (size_t)n;
    return n > 0 ? 0 : -ECONNRESET;
}

static int read_until(int socket, struct bow__hand_over_reader *reader, size_t want)
{
    int rc = 0;

    while (reader->len < want && rc == 0) {
        rc = read_some(socket, reader, want);
    }
    return rc;
}

int bow__hand_over_read(int socket, struct bow__hand_over_reader *reader,
                        struct bow__hand_over_frame *ret_frame)
{
    const uint8_t *bytes = reader->bytes;

    int rc = read_until(socket, reader, BOW__HAND_OVER_HEADER_BYTES);
    if (rc < 0) {
        return rc;
    }
    uint16_t text_len = (uint16_t)get(bytes + 6, 2);
    if (memcmp(bytes, magic, sizeof(magic)) != 0 || text_len > BOW__HAND_OVER_TEXT_BYTES) {
        return -EBADMSG;
    }
    rc = read_until(socket, reader, BOW__HAND_OVER_HEADER_BYTES + text_len);
    if (rc < 0) {
        return rc;
    }
    ret_frame->version = bytes[4];
    ret_frame->type = bytes[5];
    ret_frame->text_len = text_len;
    ret_frame->number = get(bytes + 8, 8);
    ret_frame->inode = get(bytes + 16, 8);
    memcpy(ret_frame->text, bytes + BOW__HAND_OVER_HEADER_BYTES, text_len);
    ret_frame->text[text_len] = '\0';
    ret_frame->fd = reader->fd;
    bow__hand_over_reader_init(reader);
    return 0;
}

/* Writing */

static void attach(struct msghdr *message, void *control, size_t control_bytes, int fd)
{
    memset(control, 0, control_bytes);
    message->msg_control = control;
    message->msg_controllen = control_bytes;
    struct cmsghdr *rights = CMSG_FIRSTHDR(message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof(int));
}

int bow__hand_over_write(int socket, const struct bow__hand_over_frame *frame)
{
    uint8_t bytes[BOW__HAND_OVER_HEADER_BYTES + BOW__HAND_OVER_TEXT_BYTES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {bytes, BOW__HAND_OVER_HEADER_BYTES + frame->text_len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    memcpy(bytes, magic, sizeof(magic));
    bytes[4] = BOW__HAND_OVER_VERSION;
    bytes[5] = frame->type;
    put(bytes + 6, frame->text_len, 2);
    put(bytes + 8, frame->number, 8);
    put(bytes + 16, frame->inode, 8);
    memcpy(bytes + BOW__HAND_OVER_HEADER_BYTES, frame->text, frame->text_len);
    if (frame->fd >= 0) {
        attach(&message, &control, sizeof(control), frame->fd);
    }
    do {
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    /* The kernel takes so little as one piece or not at all. */
    return (size_t)n == part.iov_len ? 0 : -EIO;
}
