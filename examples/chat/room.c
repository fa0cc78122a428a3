/* SPDX-License-Identifier: 0BSD */
/* Members come, say lines to all others, and go. One who does not read is let go, with a reason. */

#include "room.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_LINE_BYTES 512
#define HIGH_BYTES ((size_t)64 << 10)
#define LAST_WORDS_NS UINT64_C(1000000000)

static struct member *member_of(struct bow_handler *handler)
{
    return bow_channel_data(handler->channel);
}

/* One copy for all: each queue holds a reference to it. */
static void say(struct room *room, const struct member *except, const struct bow_buf *line)
{
    struct bow_buf shared;
    if (bow_buf_share(room->context, line, &shared) < 0) {
        return;
    }
    for (struct member *member = room->members; member != NULL; member = member->next) {
        if (member != except && member->name[0] != '\0' && !member->leaving) {
            /* One who is closing gets no more, and that is all right. */
            (void)!bow_channel_write_and_flush(member->handler.channel, &shared, NULL, NULL);
        }
    }
    bow_buf_unref(&shared);
}

BOW_PRINTF(3, 4)
static void sayf(struct room *room, const struct member *except, const char *format, ...)
{
    char text[MAX_LINE_BYTES + 64];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct bow_buf line = bow_buf_borrow(text, (size_t)n);
    say(room, except, &line);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *line)
{
    struct member *member = member_of(handler);
    int n = (int)strcspn((const char *)line->data, "\r\n"); /* there is a line feed */
    if (n > 0 && member->name[0] == '\0') {
        snprintf(member->name, sizeof(member->name), "%.*s", n, (const char *)line->data);
        sayf(member->room, NULL, "* %s has come\n", member->name);
        printf("%s: %s has come\n", bow_channel_peer(handler->channel), member->name);
    } else if (n > 0) {
        sayf(member->room, member, "%s: %.*s\n", member->name, n, (const char *)line->data);
    }
    return line->len;
}

/* Over the high water mark: its reader is too slow, and the room does not wait for it. */
static void on_writable(struct bow_handler *handler, bool writable)
{
    static const char reason[] = "* you read too slowly\n";
    struct member *member = member_of(handler);
    if (writable || member->leaving) {
        return;
    }
    member->leaving = true;
    const struct bow_buf last = bow_buf_borrow(reason, strlen(reason));
    (void)!bow_channel_write(handler->channel, &last, NULL, NULL);
    bow_channel_close_after_flush(handler->channel, LAST_WORDS_NS);
}

static void on_error(struct bow_handler *handler, int error)
{
    printf("%s: %s\n", bow_channel_peer(handler->channel), strerror(-error));
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct member *member = member_of(handler);
    const char *why = member->leaving ? "reads too slowly" : error < 0 ? strerror(-error) : "left";
    *(member->prev != NULL ? &member->prev->next : &member->room->members) = member->next;
    if (member->next != NULL) {
        member->next->prev = member->prev;
    }
    if (member->name[0] != '\0') {
        sayf(member->room, member, "* %s has gone: %s\n", member->name, why);
        printf("%s: %s has gone: %s\n", bow_channel_peer(handler->channel), member->name, why);
    }
}

static const struct bow_handler_ops member_ops = {
    .name = "member",
    .on_read = on_read,
    .on_writable = on_writable,
    .on_error = on_error,
    .on_inactive = on_inactive,
};

int room_on_channel(struct bow_channel *channel, void *user)
{
    struct member *member = bow_channel_data(channel); /* zeroed */
    struct room *room = user;
    member->room = room;
    member->next = room->members;
    if (member->next != NULL) {
        member->next->prev = member;
    }
    room->members = member;
    lines_init(&member->lines, MAX_LINE_BYTES);
    member->handler.ops = &member_ops;
    bow_channel_add_last(channel, &member->lines.handler);
    bow_channel_add_last(channel, &member->handler);
    bow_channel_set_water_marks(channel, HIGH_BYTES / 2, HIGH_BYTES);
    return 0;
}
