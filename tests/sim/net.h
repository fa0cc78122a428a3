/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SIM_NET_H
#define BOWLINE_TESTS_SIM_NET_H

/*
 * A network and an operating system of our own, in one process and one thread, on
 * virtual time. Each node has a struct bow_system whose sockets, poller and clock are
 * these; all that chance decides comes from one seed, so a run repeats exactly.
 *
 *     node A ── sim_socket ══ sim_pipe ══► sim_socket ── node B
 *                          ◄══ sim_pipe ══
 *
 * A pipe delays what is sent into it, holds no more than its capacity, and may stand
 * still for a while or for good. Sends and receives are partial at random. Knows
 * nothing of RPC.
 *
 * A machine that works takes time of its own: its clock runs ahead, and it has no further
 * turn until the others have caught up.
 */

#include <bowline/system.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_US UINT64_C(1000)
#define SIM_MS UINT64_C(1000000)
#define SIM_S UINT64_C(1000000000)

#define SIM_FIRST_FD 3
#define SIM_MAX_FDS 192
#define SIM_MAX_WATCHES 64
#define SIM_MAX_STALLS 16

struct sim_net;
struct sim_conn;

/** One machine's view: its system table, and what is wrong with it just now. */
struct sim_node {
    struct bow_system system; /* its `user` is the node */
    struct sim_net *net;
    const char *name;
    struct bow_poller *poller; /* of its one loop */
    uint64_t no_fds_until_ns;  /* sockets and accepts fail with EMFILE */
    uint64_t fds_failed_ns;    /* when that last happened; 0: never */
    bool frozen;               /* it does not run; to others it is as a stopped process */
    uint64_t ahead_ns;         /* of the network's clock, within a turn */
    uint64_t busy_until_ns;    /* with what it did in its last turn */
    uint64_t quiet_until_ns;   /* nothing for its loop before, unless somebody touches it */
    int n_faulty;              /* connections it made that were harmed, and it has not closed yet */
    uint64_t faulty_until_ns;  /* when it closed the last of them */
};

enum sim_socket_kind {
    SIM_FREE = 0,
    SIM_NEW,
    SIM_LISTENING,
    SIM_CONNECTING,
    SIM_OPEN,
    SIM_WAKE,
};

struct sim_socket {
    enum sim_socket_kind kind;
    struct sim_node *node;
    uint16_t port;     /* bound to, or connected to */
    int error;         /* a positive errno, told once by SO_ERROR, recv or send */
    bool broken;       /* had an error */
    bool signalled;    /* wake */
    uint64_t at_ns;    /* connecting: when it is known how that ended */
    int connect_error; /* how */
    uint64_t reset_ns; /* open: when the peer's RST arrives; BOW_NEVER */
    struct sim_conn *conn;
    int side;

    /* What sim_readiness() found, which holds until then, unless somebody touches it. */
    uint32_t bits;
    uint64_t bits_until_ns;
};

struct sim_segment {
    uint64_t at_ns;
    size_t n;
};

/** One direction of a connection. */
struct sim_pipe {
    uint8_t *bytes;
    size_t cap;
    size_t head; /* ring */
    size_t n;
    struct sim_segment *segments;
    size_t n_segments;
    size_t first_segment;
    uint64_t last_ns; /* when the last one arrives */
    uint64_t fin_ns;  /* when the end arrives; BOW_NEVER */
    uint64_t stalled_until_ns;
};

struct sim_conn {
    struct sim_conn *next;
    struct sim_pipe pipes[2]; /* [side]: what that side sends */
    int fds[2];               /* -1: not accepted yet, or closed */
    struct sim_node *nodes[2];
    bool closed[2];
    bool is_faulty;     /* one of its ends was harmed */
    uint64_t accept_ns; /* when it is in the listener's queue */
    int listener;       /* its fd; -1: accepted, or dropped */
    uint64_t delay_ns;
    uint16_t port;
};

struct sim_net {
    uint64_t seed;
    uint64_t random;
    uint64_t now_ns;
    bool story; /* print what happens */
    struct sim_socket sockets[SIM_MAX_FDS];
    struct sim_conn *conns;
    struct {
        uint16_t port;
        uint64_t until_ns; /* nothing passes until then */
    } stalls[SIM_MAX_STALLS];
    int n_stalls;
    uint64_t n_partial;
    uint64_t n_resets;
};

/* net.c */

void sim_net_init(struct sim_net *net, uint64_t seed, bool story);
void sim_net_fini(struct sim_net *net);
uint64_t sim_random(struct sim_net *net);
/** Below `n`. */
uint64_t sim_below(struct sim_net *net, uint64_t n);
/** One in `n`. */
bool sim_chance(struct sim_net *net, uint64_t n);
void sim_tell(struct sim_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct sim_socket *sim_socket_of(struct sim_net *net, int fd);
/** BOW_POLL_ bits of a descriptor now. */
uint32_t sim_readiness(struct sim_net *net, int fd);
/** When that next changes by time alone; BOW_NEVER. After sim_readiness(). */
uint64_t sim_readiness_changes(const struct sim_net *net, int fd);
/** Something may have changed for the sockets of a connection, and who waits for it. */
void sim_conn_touch(struct sim_net *net, const struct sim_conn *conn);
/** Until when nothing passes to and from `port`; 0. */
uint64_t sim_stalled_until(const struct sim_net *net, uint16_t port);
/** Descriptors that are open. */
int sim_n_fds(const struct sim_net *net);

/* What can go wrong. */

/** Reset a connection to `port` chosen by chance: both ends hear of it, or only one. Returns
 * whether there was one. */
bool sim_reset_one(struct sim_net *net, uint16_t port);
/** Nothing passes between `port` and its peers until then, nor can anybody connect. */
void sim_stall(struct sim_net *net, uint16_t port, uint64_t until_ns);
/** The connection stays up at both ends, and nothing passes any more. */
bool sim_cut_one(struct sim_net *net, uint16_t port);
/** As when the process dies: every connection of the node is reset, it listens no more. */
void sim_kill(struct sim_net *net, struct sim_node *node);

/* net_pipe.c */

int sim_pipe_init(struct sim_pipe *pipe, size_t cap);
void sim_pipe_fini(struct sim_pipe *pipe);
size_t sim_pipe_room(const struct sim_pipe *pipe);
void sim_pipe_put(struct sim_pipe *pipe, const uint8_t *bytes, size_t n, uint64_t at_ns);
/** Bytes that have arrived. */
size_t sim_pipe_arrived(const struct sim_pipe *pipe, uint64_t now_ns);
void sim_pipe_take(struct sim_pipe *pipe, uint8_t *bytes, size_t n);
/** Whether all has been taken and the end has arrived. */
bool sim_pipe_ended(const struct sim_pipe *pipe, uint64_t now_ns);
/** When something of it arrives next; BOW_NEVER. */
uint64_t sim_pipe_next(const struct sim_pipe *pipe, uint64_t now_ns);
void sim_pipe_clear(struct sim_pipe *pipe);

/* net_poller.c */

extern const struct bow_poller_ops sim_poller_ops;
/** When the loop behind the node's poller has something to do, unless something happens before;
 * now or earlier: at once; BOW_NEVER. */
uint64_t sim_node_due(struct sim_node *node);
/** Something may have changed for the node. */
void sim_node_touch(struct sim_node *node);

/* net_system.c */

void sim_node_init(struct sim_node *node, struct sim_net *net, const char *name);
/** The node's own clock. */
uint64_t sim_node_now(const struct sim_node *node);
/** It works for that long, within its turn. */
void sim_node_work(struct sim_node *node, uint64_t for_ns);
/** Its turn is over. */
void sim_node_rest(struct sim_node *node);

#endif
