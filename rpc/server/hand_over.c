/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Offering a server's listening sockets to the process that is to take over: who may have them,
 * what is said (hand_over_frame.h), and what becomes of the sockets when that process fails. All on
 * the main loop. Knows nothing of how a server ends.
 *
 * From when a socket has been sent until the other process has ended, it is lent
 * (transport/channel/acceptor.h): if this server is stopped meanwhile, it closes its own descriptor
 * and spoils nothing.
 *
 * Out of descriptors nobody can be let in: that pauses, for the socket stays readable.
 */

#include "rpc/server/hand_over.h"
#include "base/alloc.h"
#include "base/log.h"
#include "rpc/server/hand_over_frame.h"
#include "rpc/server/operations/operations.h"
#include "transport/address/transport_error.h"
#include "transport/channel/acceptor.h"
#include "transport/channel/listen.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_NS (UINT64_C(100) * 1000000u)

enum stage {
    STAGE_ASKED, /* it has connected */
    STAGE_SENDING,
    STAGE_WAITING, /* until it serves */
};

/** A socket that the server listens on. */
struct place {
    struct bow_acceptor *acceptor;
    uint32_t index;
    const char *address;
    bool lent;
};

/** The process that is taking over. */
struct taker {
    int fd; /* -1: none */
    pid_t pid;
    enum stage stage;
    uint32_t next; /* place to send */
    uint32_t n_sent;
    struct bow__watch watch;
    struct bow_timer timer;
    struct bow__hand_over_reader reader;
};

struct bow__hand_over {
    struct bow_server *server;
    bow__hand_over_fn on_taken;
    struct bow__listening listening;
    struct bow__watch watch;
    struct bow_timer pause;
    _Atomic uint64_t tell_at_ns; /* of a pause */
    struct taker taker;
    uint32_t n_places;
    uint32_t *sent; /* the places in the order they were sent */
    struct place places[];
};

/* Frames */

static void set_text(struct bow__hand_over_frame *frame, const char *text)
{
    size_t len = strlen(text);

    frame->text_len = (uint16_t)(len < BOW__HAND_OVER_TEXT_BYTES ? len : BOW__HAND_OVER_TEXT_BYTES);
    memcpy(frame->text, text, frame->text_len);
}

static int say(int fd, enum bow__hand_over_type type, uint64_t number, const char *text)
{
    struct bow__hand_over_frame frame = {.type = (uint8_t)type, .number = number, .fd = -1};

    set_text(&frame, text);
    return bow__hand_over_write(fd, &frame);
}

/* The end of one that took over */

static void close_taker(struct bow__hand_over *hand_over)
{
    struct taker *taker = &hand_over->taker;

    if (taker->fd < 0) {
        return;
    }
    bow_timer_stop(&taker->timer);
    bow__loop_unwatch(hand_over->server->main, &taker->watch);
    bow__hand_over_reader_fini(&taker->reader);
    close(taker->fd);
    taker->fd = -1;
}

static void stop_offering(struct bow__hand_over *hand_over)
{
    bow_timer_stop(&hand_over->pause);
    bow__loop_unwatch(hand_over->server->main, &hand_over->watch);
    bow__listening_close(&hand_over->listening);
}

static void take_back(struct place *place)
{
    if (place->lent) {
        bow__acceptor_take_back(place->acceptor, place->index);
    }
    place->lent = false;
}

static void fail(struct bow__hand_over *hand_over, const char *why)
{
    for (uint32_t i = 0; i < hand_over->n_places; i++) {
        take_back(&hand_over->places[i]);
    }
    bow__log(hand_over->server->context, BOW_LOG_WARNING,
             "server: process %ld was to take over, and does not: %s; this one goes on",
             (long)hand_over->taker.pid, why);
    close_taker(hand_over);
}

static void fail_with(struct bow__hand_over *hand_over, int error)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_errno(&text, error);
    fail(hand_over, error == -ECONNRESET || error == -EPIPE ? "it has ended" : text.bytes);
}

/* What the reader says is what the other one logs, or returns. */
static void refuse(struct bow__hand_over *hand_over, int error, const char *why)
{
    (void)say(hand_over->taker.fd, BOW__HAND_OVER_REFUSED, (uint64_t)-error, why);
    fail(hand_over, why);
}

static void on_late(struct bow_timer *timer, void *user)
{
    (void)timer;
    refuse(user, -ETIMEDOUT, "it did not say within BOW_LIMIT_HAND_OVER_NS (60 s) that it serves");
}

/* Sending */

static int send_place(struct bow__hand_over *hand_over, struct place *place)
{
    struct bow__hand_over_frame frame = {.type = BOW__HAND_OVER_SOCKET};
    struct bow__lent lent;

    int rc = bow__acceptor_lend(place->acceptor, place->index, &lent);
    if (rc == -ENOENT) {
        return 0; /* the service manager has it, or there is no descriptor */
    }
    if (rc < 0) {
        return rc;
    }
    place->lent = true;
    frame.fd = lent.fd;
    frame.number = lent.device;
    frame.inode = lent.inode;
    set_text(&frame, place->address);
    rc = bow__hand_over_write(hand_over->taker.fd, &frame);
    close(lent.fd);
    if (rc < 0) {
        take_back(place);
        return rc;
    }
    hand_over->sent[hand_over->taker.n_sent++] = (uint32_t)(place - hand_over->places);
    return 0;
}

static int send_rest(struct bow__hand_over *hand_over)
{
    struct taker *taker = &hand_over->taker;

    while (taker->next < hand_over->n_places) {
        int rc = send_place(hand_over, &hand_over->places[taker->next]);
        if (rc < 0) {
            return rc;
        }
        taker->next++;
    }
    return say(taker->fd, BOW__HAND_OVER_END, taker->n_sent, "");
}

static void go_on_sending(struct bow__hand_over *hand_over)
{
    struct taker *taker = &hand_over->taker;

    int rc = send_rest(hand_over);
    if (rc == 0) {
        taker->stage = STAGE_WAITING;
    }
    if (rc == 0 || rc == -EAGAIN) {
        rc = bow__loop_rewatch(hand_over->server->main, &taker->watch,
                               rc == 0 ? BOW_POLL_IN : BOW_POLL_OUT);
    }
    if (rc < 0) {
        fail_with(hand_over, rc);
    }
}

/* Hearing */

static bool is_named(const struct bow__hand_over_frame *frame, uint32_t index)
{
    if (index / 8 >= frame->text_len) {
        return false;
    }
    uint32_t bits = (unsigned char)frame->text[index / 8];
    return (bits >> (index % 8) & 1u) != 0;
}

/* What it has not taken ends with this server as it always does. */
static void on_serving(struct bow__hand_over *hand_over, const struct bow__hand_over_frame *frame)
{
    struct bow_server *server = hand_over->server;
    uint32_t n_taken = 0;

    for (uint32_t i = 0; i < hand_over->taker.n_sent; i++) {
        struct place *place = &hand_over->places[hand_over->sent[i]];
        if (is_named(frame, i)) {
            n_taken++;
        } else {
            take_back(place);
        }
    }
    bow__log(server->context, BOW_LOG_INFO,
             "server: process %ld has taken over %u of %u sockets; this one drains",
             (long)hand_over->taker.pid, n_taken, hand_over->taker.n_sent);
    int fd = hand_over->taker.fd;
    bow__hand_over_reader_fini(&hand_over->taker.reader);
    /* Before it hears of it: it may offer at the same place. */
    stop_offering(hand_over);
    (void)say(fd, BOW__HAND_OVER_DRAINING, 0, "");
    close_taker(hand_over);
    hand_over->on_taken(server);
}

static void on_take(struct bow__hand_over *hand_over, const struct bow__hand_over_frame *frame)
{
    struct bow__text why;

    if (frame->version != BOW__HAND_OVER_VERSION) {
        bow__text_clear(&why);
        bow__text_printf(&why,
                         "the two processes speak of hand-overs in versions %u (the old one) and "
                         "%u: stop the old one, then start the new one",
                         BOW__HAND_OVER_VERSION, frame->version);
        refuse(hand_over, -EPROTONOSUPPORT, why.bytes);
        return;
    }
    hand_over->taker.stage = STAGE_SENDING;
    go_on_sending(hand_over);
}

static void on_frame(struct bow__hand_over *hand_over, const struct bow__hand_over_frame *frame)
{
    enum stage stage = hand_over->taker.stage;

    if (frame->fd >= 0) {
        close(frame->fd);
    }
    if (stage == STAGE_ASKED && frame->type == BOW__HAND_OVER_TAKE) {
        on_take(hand_over, frame);
    } else if (stage == STAGE_WAITING && frame->type == BOW__HAND_OVER_SERVING) {
        on_serving(hand_over, frame);
    } else {
        fail_with(hand_over, -EBADMSG);
    }
}

static void on_taker_events(struct bow__watch *watch, uint32_t events)
{
    struct taker *taker = BOW__CONTAINER(watch, struct taker, watch);
    struct bow__hand_over *hand_over = BOW__CONTAINER(taker, struct bow__hand_over, taker);
    struct bow__hand_over_frame frame;

    (void)events;
    if (taker->stage == STAGE_SENDING) {
        go_on_sending(hand_over);
        return;
    }
    int rc = bow__hand_over_read(taker->fd, &taker->reader, &frame);
    if (rc == 0) {
        on_frame(hand_over, &frame);
    } else if (rc != -EAGAIN) {
        fail_with(hand_over, rc);
    }
}

static const struct bow__watch_ops taker_ops = {.on_events = on_taker_events};

/* Who asks */

static void begin_taker(struct bow__hand_over *hand_over, int fd, pid_t pid)
{
    struct taker *taker = &hand_over->taker;

    taker->fd = fd;
    taker->pid = pid;
    taker->stage = STAGE_ASKED;
    taker->next = 0;
    taker->n_sent = 0;
    bow__hand_over_reader_init(&taker->reader);
    bow_timer_start(&taker->timer, BOW_LIMIT_HAND_OVER_NS);
    int rc = bow__loop_watch(hand_over->server->main, &taker->watch, fd, BOW_POLL_IN);
    if (rc < 0) {
        fail_with(hand_over, rc);
    }
}

static void turn_away(int fd, int error, const char *why)
{
    (void)say(fd, BOW__HAND_OVER_REFUSED, (uint64_t)-error, why);
    close(fd);
}

/* Sockets are as good as what is sent to them: they are for the same user's processes. */
static void on_asked(struct bow__hand_over *hand_over, int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);
    struct bow__text why;

    bow__text_clear(&why);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid()) {
        bow__text_printf(&why,
                         "this server runs as user %ld, and hands its sockets to no other: start "
                         "the new one as the same user",
                         (long)geteuid());
        turn_away(fd, -EPERM, why.bytes);
    } else if (hand_over->taker.fd >= 0) {
        bow__text_printf(&why, "process %ld is taking over at this moment",
                         (long)hand_over->taker.pid);
        turn_away(fd, -EBUSY, why.bytes);
    } else {
        begin_taker(hand_over, fd, peer.pid);
    }
}

static void pause_accepting(struct bow__hand_over *hand_over, int error)
{
    struct bow_loop *loop = hand_over->server->main;
    struct bow__text text;

    if (bow__log_is_due(&hand_over->tell_at_ns, bow_loop_now(loop))) {
        bow__text_clear(&text);
        bow__text_errno(&text, error);
        bow__log(hand_over->server->context, BOW_LOG_WARNING,
                 "server: who asks for its sockets waits, 100 ms at a time: %s%s", text.bytes,
                 error == -EMFILE || error == -ENFILE
                     ? ": raise the limit of open files (ulimit -n)"
                     : "");
    }
    (void)bow__loop_rewatch(loop, &hand_over->watch, 0);
    bow_timer_start(&hand_over->pause, PAUSE_NS);
}

static void on_pause_over(struct bow_timer *timer, void *user)
{
    struct bow__hand_over *hand_over = user;

    if (bow__loop_rewatch(hand_over->server->main, &hand_over->watch, BOW_POLL_IN) < 0) {
        bow_timer_start(timer, PAUSE_NS);
    }
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow__hand_over *hand_over = BOW__CONTAINER(watch, struct bow__hand_over, watch);
    struct bow_sockaddr peer = {.len = 0};
    struct bow__socket socket;

    (void)events;
    int rc = bow__listening_accept(&hand_over->listening, &socket, &peer);
    if (rc == 0) {
        on_asked(hand_over, socket.fd);
    } else if (rc != -EAGAIN) {
        pause_accepting(hand_over, rc);
    }
}

static const struct bow__watch_ops watch_ops = {.on_events = on_events};

/* Birth and end */

static uint32_t count_places(const struct bow_server *server)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        n += bow__acceptor_n_listeners(server->acceptors[i]);
    }
    return server->operations == NULL
               ? n
               : n + bow__acceptor_n_listeners(bow__operations_acceptor(server->operations));
}

static void add_places(struct bow__hand_over *hand_over, struct bow_acceptor *acceptor,
                       const char *address)
{
    for (uint32_t i = 0; i < bow__acceptor_n_listeners(acceptor); i++) {
        hand_over->places[hand_over->n_places++] =
            (struct place){.acceptor = acceptor, .index = i, .address = address};
    }
}

static void list_places(struct bow__hand_over *hand_over)
{
    struct bow_server *server = hand_over->server;
    const struct bow__listener *listener = server->listeners;

    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        add_places(hand_over, server->acceptors[i], listener->address);
        listener = listener->next;
    }
    if (server->operations != NULL) {
        add_places(hand_over, bow__operations_acceptor(server->operations),
                   server->operations_address);
    }
}

static size_t bytes_of(uint32_t n_places)
{
    return sizeof(struct bow__hand_over) + n_places * (sizeof(struct place) + sizeof(uint32_t));
}

static int check(const char *address, uint32_t n_places, struct bow__address *ret_address,
                 struct bow_transport_error *ret_error)
{
    static const char stage[] = "offering sockets at";
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__address_parse(address, ret_address, &why) < 0) {
        return bow__transport_error(ret_error, "parsing", address != NULL ? address : "the address",
                                    -EINVAL, why.bytes);
    }
    if (ret_address->kind != BOW__ADDRESS_UNIX) {
        return bow__transport_error(ret_error, stage, address, -EINVAL,
                                    "descriptors go over Unix sockets: write unix:PATH or "
                                    "unix-abstract:NAME");
    }
    if (n_places > BOW_LIMIT_HAND_OVER_SOCKETS) {
        return bow__transport_error(ret_error, stage, address, -E2BIG,
                                    "the server has more than BOW_LIMIT_HAND_OVER_SOCKETS (4096): "
                                    "listen without per_worker");
    }
    return 0;
}

int bow__hand_over_new(struct bow_server *server, const char *address, bow__hand_over_fn on_taken,
                       struct bow__hand_over **ret_hand_over, struct bow_transport_error *ret_error)
{
    uint32_t n_places = count_places(server);
    struct bow__address parsed;

    int rc = check(address, n_places, &parsed, ret_error);
    if (rc < 0) {
        return rc;
    }
    struct bow__hand_over *hand_over = bow__alloc_zero(server->context, bytes_of(n_places));
    if (hand_over == NULL) {
        return bow__transport_error(ret_error, "offering sockets at", address, -ENOMEM, NULL);
    }
    hand_over->listening.unix_rights =
        (struct bow__unix_rights){.mode = 0600, .owner = (uid_t)-1, .group = (gid_t)-1};
    rc =
        bow__listening_open(&hand_over->listening, server->context, &parsed, address, 0, ret_error);
    if (rc < 0) {
        bow__free(server->context, hand_over, bytes_of(n_places));
        return rc;
    }
    hand_over->server = server;
    hand_over->on_taken = on_taken;
    hand_over->watch.ops = &watch_ops;
    bow__list_init(&hand_over->watch.link);
    hand_over->taker.fd = -1;
    hand_over->taker.watch.ops = &taker_ops;
    bow__list_init(&hand_over->taker.watch.link);
    bow_timer_init(&hand_over->taker.timer, server->main, on_late, hand_over);
    bow_timer_init(&hand_over->pause, server->main, on_pause_over, hand_over);
    list_places(hand_over);
    hand_over->sent = (uint32_t *)(void *)(hand_over->places + n_places);
    *ret_hand_over = hand_over;
    return 0;
}

int bow__hand_over_start(struct bow__hand_over *hand_over)
{
    return bow__loop_watch(hand_over->server->main, &hand_over->watch, hand_over->listening.fd,
                           BOW_POLL_IN);
}

void bow__hand_over_close(struct bow__hand_over *hand_over)
{
    if (hand_over == NULL) {
        return;
    }
    close_taker(hand_over);
    stop_offering(hand_over);
}

void bow__hand_over_free(struct bow__hand_over *hand_over)
{
    if (hand_over == NULL) {
        return;
    }
    bow__listening_close(&hand_over->listening);
    bow__free(hand_over->server->context, hand_over, bytes_of(hand_over->n_places));
}
