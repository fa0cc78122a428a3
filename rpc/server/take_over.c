/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Taking over from an older process: asking for its sockets, and saying that this one serves. What
 * is said is in hand_over_frame.h. Blocks, each time for BOW_LIMIT_TAKE_OVER_NS at most.
 *
 * If the old one ends meanwhile, what it has sent is still listened on, so this one goes on with
 * that alone.
 */

#include "rpc/server/take_over.h"
#include "base/log.h"
#include "rpc/server/hand_over_frame.h"
#include "rpc/server/operations/operations.h"
#include "rpc/server/server_state.h"
#include "transport/channel/acceptor.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static int explain(struct bow_server *server, int rc, const char *why)
{
    bow__text_printf(&server->error, "taking over from %s: ", server->take_over_address);
    if (why != NULL) {
        bow__text_printf(&server->error, "%s", why);
    } else {
        bow__text_errno(&server->error, rc);
    }
    return rc;
}

/* A blocking read says -EAGAIN when its time is over. */
static int explain_reading(struct bow_server *server, int rc)
{
    if (rc == -EAGAIN) {
        return explain(server, -ETIMEDOUT,
                       "who offers sockets there did not answer within BOW_LIMIT_TAKE_OVER_NS "
                       "(5 s): is it held, or stopped? End it, and start again");
    }
    if (rc == -EBADMSG) {
        return explain(server, rc,
                       "who listens there offers no sockets: give options.take_over a name of its "
                       "own");
    }
    return explain(server, rc,
                   rc == -EMFILE ? "no descriptors are left for its sockets: raise the limit of "
                                   "open files (ulimit -n)"
                                 : NULL);
}

static int explain_refusal(struct bow_server *server, const struct bow__hand_over_frame *frame)
{
    int rc = frame->number > 0 && frame->number < 4096 ? -(int)frame->number : -EPROTO;
    struct bow_slice words = {(const uint8_t *)frame->text, frame->text_len};

    bow__text_printf(&server->error,
                     "taking over from %s: it refuses: ", server->take_over_address);
    bow__text_escape(&server->error, words, BOW__HAND_OVER_TEXT_BYTES);
    return rc;
}

/* Asking */

static int parse(struct bow_server *server, struct bow__address *ret_address)
{
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__address_parse(server->take_over_address, ret_address, &why) < 0) {
        return explain(server, -EINVAL, why.bytes);
    }
    if (ret_address->kind != BOW__ADDRESS_UNIX) {
        return explain(server, -EINVAL,
                       "descriptors go over Unix sockets: write unix:PATH or unix-abstract:NAME");
    }
    return 0;
}

/* An abstract name is anybody's to take: who has it is asked for his user first. */
static int check_user(struct bow_server *server, int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
        return explain(server, -errno, NULL);
    }
    if (peer.uid != geteuid()) {
        bow__text_printf(&server->error,
                         "taking over from %s: process %ld offers there as user %ld, and this one "
                         "runs as user %ld: both have to be the same user's",
                         server->take_over_address, (long)peer.pid, (long)peer.uid,
                         (long)geteuid());
        return -EPERM;
    }
    return 0;
}

static int set_times(int fd)
{
    const struct timeval time = {.tv_sec = (time_t)(BOW_LIMIT_TAKE_OVER_NS / SECOND_NS)};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) < 0) {
        return -errno;
    }
    return 0;
}

/* `*ret_fd` is -1 when nobody is there. */
static int connect_to(struct bow_server *server, const struct bow__address *address, int *ret_fd)
{
    int rc = 0;

    *ret_fd = -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return explain(server, -errno, NULL);
    }
    rc = set_times(fd);
    if (rc == 0 && connect(fd, (const struct sockaddr *)&address->sockaddr.storage,
                           address->sockaddr.len) < 0) {
        rc = -errno;
    }
    if (rc == -ENOENT || rc == -ECONNREFUSED) {
        close(fd);
        return 0;
    }
    rc = rc < 0 ? explain_reading(server, rc) : check_user(server, fd);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

/* Returns 1 when that was the last. */
static int on_frame(struct bow_server *server, const struct bow__hand_over_frame *frame)
{
    struct bow__handed *handed = &server->take_over.handed;

    if (frame->type == BOW__HAND_OVER_SOCKET && frame->fd >= 0 &&
        handed->n_sockets < BOW_LIMIT_HAND_OVER_SOCKETS) {
        int rc = bow__handed_add(handed, frame->fd, frame->text, (dev_t)frame->number,
                                 (ino_t)frame->inode);
        return rc < 0 ? explain(server, rc, NULL) : 0;
    }
    if (frame->fd >= 0) {
        close(frame->fd);
    }
    if (frame->type == BOW__HAND_OVER_REFUSED) {
        return explain_refusal(server, frame);
    }
    return frame->type == BOW__HAND_OVER_END ? 1 : explain_reading(server, -EBADMSG);
}

static int receive_sockets(struct bow_server *server)
{
    struct bow__hand_over_reader reader;
    struct bow__hand_over_frame frame;
    int rc = 0;

    bow__hand_over_reader_init(&reader);
    while (rc == 0) {
        rc = bow__hand_over_read(server->take_over.fd, &reader, &frame);
        if (rc == -ECONNRESET) {
            bow__log(server->context, BOW_LOG_WARNING,
                     "server: the process at %s has ended while this one took over: it goes on "
                     "with %u of its sockets",
                     server->take_over_address, server->take_over.handed.n_sockets);
            rc = 1;
        } else {
            rc = rc < 0 ? explain_reading(server, rc) : on_frame(server, &frame);
        }
    }
    bow__hand_over_reader_fini(&reader);
    return rc < 0 ? rc : 0;
}

int bow__take_over_begin(struct bow_server *server)
{
    const struct bow__hand_over_frame take = {.type = BOW__HAND_OVER_TAKE, .fd = -1};
    struct bow__address address;

    server->take_over.fd = -1;
    if (server->take_over_address == NULL) {
        return 0;
    }
    int rc = parse(server, &address);
    if (rc == 0) {
        rc = connect_to(server, &address, &server->take_over.fd);
    }
    if (rc < 0 || server->take_over.fd < 0) {
        return rc;
    }
    server->take_over.handed.context = server->context;
    /* If it cannot be asked any more, reading says why. */
    (void)bow__hand_over_write(server->take_over.fd, &take);
    return receive_sockets(server);
}

/* Telling */

static void list_taken(const struct bow__handed *handed, struct bow__hand_over_frame *frame)
{
    frame->text_len = (uint16_t)((handed->n_sockets + 7) / 8);
    for (uint32_t i = 0; i < handed->n_sockets; i++) {
        if (handed->sockets[i].taken) {
            frame->text[i / 8] |= (char)(1u << (i % 8));
        }
    }
}

static void own_all(struct bow_server *server)
{
    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        bow__acceptor_own(server->acceptors[i]);
    }
    if (server->operations != NULL) {
        bow__acceptor_own(bow__operations_acceptor(server->operations));
    }
}

static int hear_answer(struct bow_server *server)
{
    struct bow__hand_over_reader reader;
    struct bow__hand_over_frame frame = {.fd = -1};

    bow__hand_over_reader_init(&reader);
    int rc = bow__hand_over_read(server->take_over.fd, &reader, &frame);
    bow__hand_over_reader_fini(&reader);
    if (rc == 0 && frame.type == BOW__HAND_OVER_REFUSED) {
        return explain_refusal(server, &frame);
    }
    if (rc == 0) {
        bow__log(server->context, BOW_LOG_INFO, "server: it has taken over from %s",
                 server->take_over_address);
        return 0;
    }
    bow__log(server->context, BOW_LOG_WARNING,
             rc == -EAGAIN ? "server: the process at %s has not said within BOW_LIMIT_TAKE_OVER_NS "
                             "(5 s) that it drains: if it goes on, end it"
                           : "server: the process at %s has ended while this one took over",
             server->take_over_address);
    return 0;
}

int bow__take_over_finish(struct bow_server *server)
{
    struct bow__hand_over_frame serving = {.type = BOW__HAND_OVER_SERVING, .fd = -1};

    if (server->take_over.fd < 0) {
        return 0;
    }
    list_taken(&server->take_over.handed, &serving);
    (void)bow__hand_over_write(server->take_over.fd, &serving);
    int rc = hear_answer(server);
    if (rc == 0) {
        own_all(server);
    }
    bow__take_over_abandon(server);
    return rc;
}

void bow__take_over_abandon(struct bow_server *server)
{
    if (server->take_over.fd >= 0) {
        close(server->take_over.fd);
    }
    server->take_over.fd = -1;
    bow__handed_fini(&server->take_over.handed);
}
