/* SPDX-License-Identifier: 0BSD */
/* The service inside a GLib main loop. Usage: embedded-glib ADDRESS */

#include "service.h"
#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>

struct program {
    GMainLoop *main_loop;
    struct service *service;
};

static gboolean on_ready(gint fd, GIOCondition condition, gpointer user)
{
    struct program *program = user;
    (void)fd;
    (void)condition;
    if (service_turn(program->service)) {
        return G_SOURCE_CONTINUE;
    }
    g_main_loop_quit(program->main_loop);
    return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
    struct program program;
    program.service = service_start(argc > 1 ? argv[1] : "127.0.0.1:50051");
    if (program.service == NULL) {
        return 1;
    }
    program.main_loop = g_main_loop_new(NULL, FALSE);
    g_unix_fd_add(service_fd(program.service), G_IO_IN, on_ready, &program);
    printf("serving as process %d\n", (int)getpid());
    fflush(stdout);
    g_main_loop_run(program.main_loop);
    g_main_loop_unref(program.main_loop);
    service_free(program.service);
    return 0;
}
