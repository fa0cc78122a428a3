/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A file of addresses that is watched by inotify. Watched is the folder that the file is in, for
 * what replaces a file is another one, and the one that the file is in once all links are followed:
 * a ConfigMap of Kubernetes is a link to a file behind a link to a folder, and the second is put in
 * place of the one before. Anything that happens in either has the file read again.
 *
 * It is read on the loop: BOW_LIMIT_ADDRESS_FILE_BYTES at most, of a plain file.
 */

#include "rpc/client/resolve/file.h"
#include "base/alloc.h"
#include "base/text.h"
#include "rpc/client/resolve/address_lines.h"
#include "transport/loop/loop.h"
#include <bowline/limits.h>
#include <bowline/system.h>
#include <bowline/timer.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file may be changed without a word, as over NFS, and a folder may not be there yet. */
#define LOOK_AGAIN_NS (UINT64_C(30) * 1000000000u)
#define LOOK_SOON_NS (UINT64_C(1) * 1000000000u)

#define CHANGES                                                                                    \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |       \
     IN_MOVE_SELF | IN_ONLYDIR)

struct file {
    struct bow_resolver_watch *watch;
    struct bow_loop *loop;
    struct bow_context *context;
    struct bow__watch changes;
    int fd; /* inotify's; -1: it could not be had */
    struct bow_timer timer;
    char path[PATH_MAX];
};

/* Reading */

static int refuse(struct bow__text *why, const char *what, int error)
{
    bow__text_printf(why, "%s", what);
    bow__text_errno(why, error);
    return -error;
}

static int read_all(int fd, char *bytes, size_t size, struct bow__text *why)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, bytes + n, size - n);
        if (got < 0 && errno != EINTR) {
            return refuse(why, "reading it: ", errno);
        }
        if (got == 0) {
            break;
        }
        n += got > 0 ? (size_t)got : 0;
    }
    if (memchr(bytes, '\0', n) != NULL) {
        bow__text_printf(why, "it is no text: it has a NUL");
        return -EINVAL;
    }
    bytes[n] = '\0';
    return 0;
}

static int size_of(int fd, size_t *ret_size, struct bow__text *why)
{
    struct stat stat;

    if (fstat(fd, &stat) < 0) {
        return refuse(why, "looking at it: ", errno);
    }
    if (!S_ISREG(stat.st_mode)) {
        bow__text_printf(why, "it is no plain file");
        return -EINVAL;
    }
    if ((uint64_t)stat.st_size > BOW_LIMIT_ADDRESS_FILE_BYTES) {
        bow__text_printf(why, "it has %lld bytes, and at most %zu (BOW_LIMIT_ADDRESS_FILE_BYTES)",
                         (long long)stat.st_size, BOW_LIMIT_ADDRESS_FILE_BYTES);
        return -EFBIG;
    }
    *ret_size = (size_t)stat.st_size;
    return 0;
}

static int tell_lines(struct file *file, char *text, struct bow__text *why)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;
    struct bow_resolver_address *addresses = NULL;
    size_t n_room = 0;

    int rc = bow__address_lines_parse(file->context, text, &addresses, &update.n_addresses, &n_room,
                                      why);
    if (rc == 0) {
        update.addresses = addresses;
        bow_resolver_update(file->watch, &update);
        bow__free(file->context, addresses, n_room * sizeof(*addresses));
    }
    return rc;
}

static int tell_of(struct file *file, int fd, struct bow__text *why)
{
    size_t size = 0;

    int rc = size_of(fd, &size, why);
    if (rc < 0) {
        return rc;
    }
    char *text = bow__alloc(file->context, size + 1);
    if (text == NULL) {
        bow__text_printf(why, "there was no memory for its %zu bytes", size);
        return -ENOMEM;
    }
    rc = read_all(fd, text, size, why);
    if (rc == 0) {
        rc = tell_lines(file, text, why);
    }
    bow__free(file->context, text, size + 1);
    return rc;
}

/* O_NONBLOCK: a FIFO is no plain file, and is not waited for. */
static int tell(struct file *file)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;
    struct bow__text why;
    int rc;

    bow__text_clear(&why);
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        rc = refuse(&why, "opening it: ", errno);
    } else {
        rc = tell_of(file, fd, &why);
        close(fd);
    }
    if (rc < 0) {
        update.error = why.bytes;
        bow_resolver_update(file->watch, &update);
    }
    return rc;
}

/* Watching */

static void watch_folder(struct file *file, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash != NULL && slash > path ? (size_t)(slash - path) : 1;

    memcpy(folder, path, n);
    folder[n] = '\0';
    (void)!inotify_add_watch(file->fd, folder, CHANGES);
}

/* A folder that is watched already is not watched twice; one that is left is heard of in vain. */
static void watch_folders(struct file *file)
{
    char followed[PATH_MAX];

    if (file->fd < 0) {
        return;
    }
    watch_folder(file, file->path);
    if (realpath(file->path, followed) != NULL) {
        watch_folder(file, followed);
    }
}

/* Watched first, so that no change falls between. */
static void look(struct file *file)
{
    watch_folders(file);
    bool is_good = tell(file) == 0 && file->fd >= 0;

    bow_timer_start(&file->timer, is_good ? LOOK_AGAIN_NS : LOOK_SOON_NS);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    look(user);
}

/* Whatever it was, once for all that has happened. */
static void on_changes(struct bow__watch *watch, uint32_t events)
{
    struct file *file = BOW__CONTAINER(watch, struct file, changes);
    char bytes[4096];

    (void)events;
    while (read(file->fd, bytes, sizeof(bytes)) > 0) {
    }
    bow_timer_start(&file->timer, 0);
}

static void open_inotify(struct file *file)
{
    static const struct bow__watch_ops ops = {.on_events = on_changes};

    file->changes.ops = &ops;
    bow__list_init(&file->changes.link);
    file->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file->fd >= 0 && bow__loop_watch(file->loop, &file->changes, file->fd, BOW_POLL_IN) < 0) {
        close(file->fd);
        file->fd = -1;
    }
}

/* The table */

static int check(const char *name, struct bow__text *why)
{
    if (strncmp(name, "//", 2) == 0 || strlen(name) + 2 > PATH_MAX) {
        bow__text_printf(why, "write file:///PATH, of this host, shorter than PATH_MAX");
        return -EINVAL;
    }
    return 0;
}

static int start(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state)
{
    struct bow_context *context = bow_loop_context(loop);

    (void)resolver;
    struct file *file = bow__alloc_zero(context, sizeof(*file));
    if (file == NULL) {
        return -ENOMEM;
    }
    file->watch = watch;
    file->loop = loop;
    file->context = context;
    snprintf(file->path, sizeof(file->path), "%s%s", name[0] == '/' ? "" : "/", name);
    bow_timer_init(&file->timer, loop, on_timer, file);
    open_inotify(file);
    bow_timer_start(&file->timer, 0);
    *ret_state = file;
    return 0;
}

static void refresh(void *state)
{
    struct file *file = state;

    bow_timer_start(&file->timer, 0);
}

static void stop(void *state)
{
    struct file *file = state;

    bow_timer_stop(&file->timer);
    if (file->fd >= 0) {
        bow__loop_unwatch(file->loop, &file->changes);
        close(file->fd);
    }
    bow__free(file->context, file, sizeof(*file));
}

const struct bow__scheme bow__scheme_file = {
    .table =
        {
            .size = sizeof(struct bow_resolver),
            .scheme = "file",
            .start = start,
            .refresh = refresh,
            .stop = stop,
        },
    .check = check,
};
