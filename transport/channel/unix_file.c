/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The files of Unix sockets. Owns what says whether one may be removed.
 *
 * A socket's file outlives a server that was killed, so one that nobody listens on is replaced. To
 * tell, one connects: but a server that has bound and does not listen yet looks the same, and of
 * two that find the same stale file the slower one would remove what the quicker one has made of
 * it. Hence a lock, from before bind() until after listen(), of all who start there: a file beside
 * it, PATH.lock, under flock(). It goes when it is let go, and after a crash the kernel lets go of
 * it. (A lock on the folder would leave nothing behind, but others lock folders, for as long as
 * they run.)
 *
 * While a server listens nobody takes its file for stale. A person may have removed it by hand, and
 * its successor made one of the same name: so at the end device and inode are compared. The bound
 * socket holds its inode, whose number is given to no other file before it is closed.
 */

#include "transport/channel/unix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"
#define LOCK_TRIES 3

/* The lock */

/* Who held it before may have removed the file after we had opened it. */
static bool is_named(int fd, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

int bow__unix_lock_take(const char *path, struct bow__unix_lock *ret_lock)
{
    ret_lock->fd = -1;
    snprintf(ret_lock->path, sizeof(ret_lock->path), "%s" LOCK_SUFFIX, path);
    for (int i = 0; i < LOCK_TRIES; i++) {
        int fd = open(ret_lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0) {
            return 0; /* bind() will say why, or this folder is not ours alone */
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            bool is_held = errno == EWOULDBLOCK;
            close(fd);
            return is_held ? -EADDRINUSE : 0;
        }
        if (is_named(fd, ret_lock->path)) {
            ret_lock->fd = fd;
            return 0;
        }
        close(fd);
    }
    return -EADDRINUSE;
}

void bow__unix_lock_release(struct bow__unix_lock *lock)
{
    if (lock->fd < 0) {
        return;
    }
    unlink(lock->path);
    /* A child that was forked meanwhile may have the descriptor as well. */
    (void)flock(lock->fd, LOCK_UN);
    close(lock->fd);
    lock->fd = -1;
}

/* Replacing */

static bool is_listened_on(const struct bow_sockaddr *address, const struct bow_system *system)
{
    int fd = system->socket(system->user, AF_UNIX, SOCK_STREAM, 0);

    if (fd < 0) {
        return true;
    }
    int rc = system->connect(system->user, fd, address);
    system->close(system->user, fd);
    return rc != -ECONNREFUSED;
}

int bow__unix_file_replace(const char *path, const struct bow_sockaddr *address,
                           const struct bow_system *system)
{
    struct stat found;

    /* A file of another kind refuses connections as well, and is somebody's. */
    if (lstat(path, &found) == 0 && !S_ISSOCK(found.st_mode)) {
        return -ENOTSOCK;
    }
    if (is_listened_on(address, system)) {
        return -EADDRINUSE;
    }
    return unlink(path) == 0 || errno == ENOENT ? 0 : -EADDRINUSE;
}

/* Ours */

int bow__unix_file_own(struct bow__unix_file *file, const char *path)
{
    struct stat made;

    if (lstat(path, &made) < 0) {
        return -errno;
    }
    bow__unix_file_know(file, path, made.st_dev, made.st_ino);
    return 0;
}

void bow__unix_file_know(struct bow__unix_file *file, const char *path, dev_t device, ino_t inode)
{
    snprintf(file->path, sizeof(file->path), "%s", path);
    file->device = device;
    file->inode = inode;
}

int bow__unix_file_set_rights(const struct bow__unix_file *file,
                              const struct bow__unix_rights *rights, const char **ret_stage)
{
    /* In this order: of a file that has been given away the mode is not ours to change. */
    if (rights->mode != 0 && chmod(file->path, rights->mode) < 0) {
        *ret_stage = "changing the mode of";
        return -errno;
    }
    if ((rights->owner != (uid_t)-1 || rights->group != (gid_t)-1) &&
        lchown(file->path, rights->owner, rights->group) < 0) {
        *ret_stage = "changing the owner of";
        return -errno;
    }
    return 0;
}

void bow__unix_file_remove(struct bow__unix_file *file)
{
    struct stat found;

    if (file->path[0] != '\0' && lstat(file->path, &found) == 0 && found.st_dev == file->device &&
        found.st_ino == file->inode) {
        unlink(file->path);
    }
    bow__unix_file_forget(file);
}
