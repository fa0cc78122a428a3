/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_UNIX_FILE_H
#define BOWLINE_TRANSPORT_CHANNEL_UNIX_FILE_H

/*
 * The file that names a listening Unix socket: who may make and replace it, with which rights, and
 * whose it is to remove. Knows nothing of who connects.
 *
 *     lock ──► bind ──► is stale? replace, bind ──► own ──► rights ──► listen ──► unlock
 *                                                    └──► remove, at the end
 */

#include "base/text.h"

#include <bowline/system.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define BOW__MODE_MAX 0777u

/** What the file is to have. */
struct bow__unix_rights {
    uint32_t mode; /* 0: as the umask leaves it */
    uid_t owner;   /* (uid_t)-1: this process's */
    gid_t group;   /* the same */
};

/** A file that is ours, by what no later file of its name has. */
struct bow__unix_file {
    char path[128]; /* "": none */
    dev_t device;
    ino_t inode;
};

/** Held by whoever makes or replaces the file of one name, from before it binds until it listens.
 */
struct bow__unix_lock {
    int fd; /* -1: none could be had */
    char path[PATH_MAX];
};

/** Take it. Without one (fd -1, the folder may not be written to) no file may be replaced. Returns
 * 0; -EADDRINUSE when another server is between the two. Blocks on no one. */
int bow__unix_lock_take(const char *path, struct bow__unix_lock *ret_lock);
/** Nothing for one that is not held. */
void bow__unix_lock_release(struct bow__unix_lock *lock);

/** Remove the file at `path` if it is a socket that nobody listens on. Returns 0 when it is gone;
 * -ENOTSOCK when it is somebody's file of another kind; -EADDRINUSE. Under the lock. */
int bow__unix_file_replace(const char *path, const struct bow_sockaddr *address,
                           const struct bow_system *system);

/** The file at `path`, just bound, is ours. Returns 0 or a negative errno. */
int bow__unix_file_own(struct bow__unix_file *file, const char *path);
/** The file at `path` is the one that another process has made: it goes with the socket. */
void bow__unix_file_know(struct bow__unix_file *file, const char *path, dev_t device, ino_t inode);
/** Before listening, so that nobody has connected under other ones. Returns 0 or a negative errno
 * with `*ret_stage` set. */
int bow__unix_file_set_rights(const struct bow__unix_file *file,
                              const struct bow__unix_rights *rights, const char **ret_stage);
/** Remove it if it is still ours. Idempotent. */
void bow__unix_file_remove(struct bow__unix_file *file);
/** It is not ours any more: it stays. */
static inline void bow__unix_file_forget(struct bow__unix_file *file)
{
    file->path[0] = '\0';
}

#endif
