/* SPDX-License-Identifier: 0BSD */
/* A room: each line is encoded once and sent to all. Usage: room-server [ADDRESS] */

#include "room.bow.h"
#include <bowline/loop.h>
#include <errno.h>
#include <stdio.h>

struct room;

struct member {
    struct member *next;
    struct room *room;
    struct demo__room__join__call call;
    unsigned n_missed;
};

struct room {
    struct member *members;
};

static void on_line(struct demo__room__join__call call, const Demo__Line *line, void *user)
{
    struct member *sender = user;
    struct bow_context *context = bow_loop_context(bow_call_loop(call.call));
    struct bow_payload *payload;

    if (bow_payload_new(context, (const ProtobufCMessage *)line, &payload) < 0) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory for the line");
        return;
    }
    for (struct member *member = sender->room->members; member != NULL; member = member->next) {
        /* Who reads too slowly misses lines, and holds nobody up. */
        if (bow_call_send_payload(member->call.call, payload) == -EAGAIN) {
            member->n_missed++;
        }
    }
    bow_payload_unref(payload);
}

static void on_half_close(struct demo__room__join__call call, void *user)
{
    (void)user;
    demo__room__join__finish(call);
}

/* The last event, however the call ended; the member's memory is the call's. */
static void on_closed(struct demo__room__join__call call, const struct bow_status *status,
                      void *user)
{
    struct member *gone = user;
    struct member **at = &gone->room->members;

    (void)call;
    while (*at != gone) {
        at = &(*at)->next;
    }
    *at = gone->next;
    printf("somebody left (%s), having missed %u lines\n", bow_code_name(status->code),
           gone->n_missed);
    fflush(stdout);
}

static void join(struct demo__room__join__call call, void *user)
{
    static const struct demo__room__join__call_events events = {
        .on_message = on_line,
        .on_half_close = on_half_close,
        .on_closed = on_closed,
    };
    struct room *room = user;
    struct member *member = bow_call_alloc(call.call, sizeof(*member));

    if (member == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory for one more");
        return;
    }
    *member = (struct member){.next = room->members, .room = room, .call = call};
    room->members = member;
    demo__room__join__listen(call, &events, member);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on port %u\n", bow_server_port(server));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct demo__room__handlers handlers = {.join = join};
    struct room room = {NULL};
    struct bow_server *server;

    options.listen = argc > 1 ? argv[1] : "127.0.0.1:50052";
    options.on_started = on_started;
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "room-server: out of memory\n");
        return 1;
    }
    int rc = demo__room__serve(server, &handlers, &room);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "room-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
