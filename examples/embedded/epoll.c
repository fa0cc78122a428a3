/* SPDX-License-Identifier: 0BSD */
/* The service inside the epoll loop of a daemon. Usage: embedded-epoll ADDRESS [daemon] */

#include "service.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The program's own loop; its other descriptors would be added here too. */
static int run(struct service *service)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = service};
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, service_fd(service), &event) < 0) {
        perror("embedded-epoll");
        return 1;
    }
    for (bool running = true; running;) {
        int n = epoll_wait(poller, &event, 1, -1);
        if (n < 0 && errno != EINTR) {
            perror("embedded-epoll");
            break;
        }
        if (n == 1) {
            running = service_turn(event.data.ptr);
        }
    }
    close(poller);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 1;
    struct service *service = service_start(argc > 1 ? argv[1] : "127.0.0.1:50051");
    if (service == NULL) {
        return 1;
    }
    /* After the set-up, so that what fails is still seen by whoever started it. */
    if (argc < 3 || strcmp(argv[2], "daemon") != 0 || daemon(1, 1) == 0) {
        printf("serving as process %d\n", (int)getpid());
        fflush(stdout);
        status = run(service);
    }
    service_free(service);
    return status;
}
