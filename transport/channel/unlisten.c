/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The end of listening: first no further connection, then, when those that waited have been
 * accepted, none at all. The kernel would reset what still waits when a socket closes, with the
 * calls that were sent on it in good faith.
 */

#include "transport/channel/listen.h"

#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where the flags of a TCP header are. */
#define FLAGS_AT 13u

/*
 * A listening TCP socket can't be told to take no more, so it is made deaf to what begins a
 * connection: who sends that sends it again within a second, and finds who listens on the port
 * then, or nobody. Handshakes that have begun are let end. (Connections that are accepted from now
 * on inherit the filter, and see no such packet.)
 */
static void drop_syns(const struct bow_system *system, int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    /* A kernel without filters resets a little more. */
    (void)system->setsockopt(system->user, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                             sizeof(program));
}

static void unlink_path(struct bow__listening *listening)
{
    if (listening->unix_path[0] != '\0') {
        unlink(listening->unix_path);
        listening->unix_path[0] = '\0';
    }
}

bool bow__listening_fence(struct bow__listening *listening, const struct bow_system *system)
{
    if (listening->inproc != NULL) {
        bow__inproc_hide(listening->inproc);
        return true;
    }
    if (listening->inherited) {
        return false;
    }
    unlink_path(listening);
    if (listening->port > 0) {
        drop_syns(system, listening->fd);
    } else {
        (void)system->shutdown(system->user, listening->fd, SHUT_RD);
    }
    return true;
}

void bow__listening_close(struct bow__listening *listening, const struct bow_system *system)
{
    if (listening->inproc != NULL) {
        bow__inproc_unlisten(listening->inproc);
        listening->inproc = NULL;
    }
    if (listening->fd < 0) {
        return;
    }
    unlink_path(listening);
    system->close(system->user, listening->fd);
    listening->fd = -1;
}
