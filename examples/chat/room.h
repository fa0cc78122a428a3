/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_CHAT_ROOM_H
#define BOWLINE_EXAMPLES_CHAT_ROOM_H

/*
 * The room: who is in it, and how a line reaches all of them. It lives on one
 * loop, so nothing here needs a lock.
 */

#include "lines.h"
#include <bowline/channel.h>

struct member {
    struct lines lines;
    struct bow_handler handler;
    struct room *room;
    struct member *next;
    struct member *prev;
    char name[16]; /* "" until the first line has told it */
    bool leaving;  /* gets no more lines */
};

struct room {
    struct bow_context *context;
    struct member *members;
};

/** Set a new channel up as a member; its data is a struct member. `user` is the room. */
int room_on_channel(struct bow_channel *channel, void *user);

#endif
