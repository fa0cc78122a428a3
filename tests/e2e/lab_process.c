/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Lab server as a process; see lab_process.h. */

#include "lab_process.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What the child waits for, and what it says. */
struct pipes {
    int go[2];
    int out[2];
};

static void open_pipes(struct pipes *pipes)
{
    assert_int_equal(pipe2(pipes->go, O_CLOEXEC), 0);
    assert_int_equal(pipe2(pipes->out, O_CLOEXEC), 0);
}

/* In the child of a program with threads: nothing but system calls. */
static void become_server(const struct lab_process *process, const char *address,
                          const struct pipes *pipes)
{
    char byte = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (process->cable[0] != '\0' && unshare(CLONE_NEWNET) < 0) {
        _exit(126);
    }
    if (write(pipes->out[1], "\n", 1) != 1 || read(pipes->go[0], &byte, 1) != 1) {
        _exit(126);
    }
    dup2(pipes->out[1], STDOUT_FILENO);
    execl(process->program, process->program, address, (char *)NULL);
    _exit(127);
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
    char command[256];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    if (system(command) != 0) {
        fail_msg("failed: %s", command);
    }
}

static void connect_cable(const struct lab_process *process)
{
    int pid = (int)process->pid;

    run("ip link add near%d type veth peer name %s netns %d", pid, process->cable, pid);
    run("ip addr add 10.9.8.1/24 dev near%d && ip link set near%d up", pid, pid);
    run("nsenter -t %d -n ip addr add %s/24 dev %s", pid, process->host, process->cable);
    run("nsenter -t %d -n ip link set lo up", pid);
    lab_process_plug(process, true);
}

static void start(struct lab_process *process)
{
    struct pipes pipes;
    char address[48];
    char line[64] = {0};

    snprintf(address, sizeof(address), "%s:%u", process->host, process->port);
    open_pipes(&pipes);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        become_server(process, address, &pipes);
    }
    close(pipes.go[0]);
    close(pipes.out[1]);
    FILE *lines = fdopen(pipes.out[0], "r");
    assert_non_null(lines);
    assert_non_null(fgets(line, sizeof(line), lines));
    if (process->cable[0] != '\0') {
        connect_cable(process);
    }
    assert_int_equal(write(pipes.go[1], "g", 1), 1);
    close(pipes.go[1]);
    assert_non_null(fgets(line, sizeof(line), lines));
    fclose(lines);
    process->port = (uint16_t)strtoul(line, NULL, 10);
}

void lab_process_start(struct lab_process *process, const char *program, const char *host,
                       uint16_t port)
{
    memset(process, 0, sizeof(*process));
    process->program = program;
    process->port = port;
    snprintf(process->host, sizeof(process->host), "%s", host);
    start(process);
}

void lab_process_restart(struct lab_process *process)
{
    uint16_t port = process->port;

    start(process);
    assert_int_equal(process->port, port);
}

void lab_process_kill(struct lab_process *process)
{
    assert_int_equal(kill(process->pid, SIGKILL), 0);
    assert_int_equal(waitpid(process->pid, NULL, 0), process->pid);
}

void lab_process_signal(const struct lab_process *process, int number)
{
    int status = 0;

    assert_int_equal(kill(process->pid, number), 0);
    /* It is so when the kernel says so. */
    if (number == SIGSTOP || number == SIGCONT) {
        int which = number == SIGSTOP ? WUNTRACED : WCONTINUED;
        assert_int_equal(waitpid(process->pid, &status, which), process->pid);
    }
}

bool lab_process_isolate(void)
{
    return system("command -v ip nsenter >/dev/null") == 0 && unshare(CLONE_NEWNET) == 0 &&
           system("ip link set lo up && ip link add near type veth peer name far 2>/dev/null && "
                  "ip link del near") == 0;
}

void lab_process_start_apart(struct lab_process *process, const char *program)
{
    memset(process, 0, sizeof(*process));
    process->program = program;
    snprintf(process->host, sizeof(process->host), "10.9.8.2");
    snprintf(process->cable, sizeof(process->cable), "far");
    start(process);
}

void lab_process_plug(const struct lab_process *process, bool is_in)
{
    run("nsenter -t %d -n ip link set %s %s", (int)process->pid, process->cable,
        is_in ? "up" : "down");
}
