/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_HAND_OVER_FRAME_H
#define BOWLINE_RPC_SERVER_HAND_OVER_FRAME_H

/*
 * What two server processes say to each other over a Unix socket when one takes over from the
 * other. The old one offers, the new one has connected:
 *
 *     new   TAKE
 *     old   SOCKET …  one each, with its descriptor, then END;   or REFUSED
 *     new   SERVING, with those that it listens on
 *     old   DRAINING: it has let go of them;                     or REFUSED
 *
 * A connection that ends before SERVING changed nothing for the old one, one that ends behind it
 * says that the old one is no more.
 *
 *     0        4          5       6        8          16         24
 *     ┌────────┬──────────┬───────┬────────┬──────────┬──────────┬ ─ ─ ─ ─ ┐
 *     │ "BOWH" │ version  │ type  │ length │ number   │ inode    │ text    │    big-endian
 *     └────────┴──────────┴───────┴────────┴──────────┴──────────┴ ─ ─ ─ ─ ┘
 *
 * These 24 bytes are the same in all versions to come, so that each can tell the other its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOW__HAND_OVER_VERSION 1
#define BOW__HAND_OVER_HEADER_BYTES 24u
/** A bit for each of BOW_LIMIT_HAND_OVER_SOCKETS; and an address, a reason. */
#define BOW__HAND_OVER_TEXT_BYTES 512u

enum bow__hand_over_type {
    BOW__HAND_OVER_TAKE = 1,
    BOW__HAND_OVER_SOCKET, /* text: its address as the options have it; number: its file's device */
    BOW__HAND_OVER_END,    /* number: how many there were */
    BOW__HAND_OVER_SERVING, /* text: bit I of byte I / 8 is set for the socket I */
    BOW__HAND_OVER_DRAINING,
    BOW__HAND_OVER_REFUSED, /* text: why; number: an errno */
};

struct bow__hand_over_frame {
    uint8_t version; /* set by the reader, and by write() */
    uint8_t type;
    uint16_t text_len;
    uint64_t number;
    uint64_t inode;
    char text[BOW__HAND_OVER_TEXT_BYTES + 1]; /* with a NUL */
    int fd;                                   /* -1: none */
};

/** What has come of a frame so far. */
struct bow__hand_over_reader {
    size_t len;
    int fd;
    uint8_t bytes[BOW__HAND_OVER_HEADER_BYTES + BOW__HAND_OVER_TEXT_BYTES];
};

void bow__hand_over_reader_init(struct bow__hand_over_reader *reader);
/** Close what came with a frame that is not whole. */
void bow__hand_over_reader_fini(struct bow__hand_over_reader *reader);

/** The next frame from `socket`; its descriptor is the caller's. Returns 0; -EAGAIN; -ECONNRESET
 * when the other one has ended; -EBADMSG for other bytes than these; -EMFILE when there was no
 * room for the descriptor; what reading failed with. */
int bow__hand_over_read(int socket, struct bow__hand_over_reader *reader,
                        struct bow__hand_over_frame *ret_frame);
/** All of it or nothing; `frame->fd` is duplicated. Returns 0; -EAGAIN; what sending failed with.
 */
int bow__hand_over_write(int socket, const struct bow__hand_over_frame *frame);

#endif
