/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bowline: calls, questions and measurements from the command line. Each command is a file. */
#include "commands.h"
#include "say.h"

int main(int argc, char **argv)
{
    struct options options;
    bool is_done;

    int rc = options_read(&options, argc, argv, &is_done);
    if (rc != EXIT_OK || is_done) {
        return rc;
    }
    switch (options.command) {
    case COMMAND_CALL:
        return command_call(&options);
    case COMMAND_LIST:
        return command_list(&options);
    case COMMAND_DESCRIBE:
        return command_describe(&options);
    case COMMAND_PING:
        return command_ping(&options);
    case COMMAND_HEALTH:
        return command_health(&options);
    case COMMAND_BENCH:
        return command_bench(&options);
    case COMMAND_WATCH:
        return command_watch(&options);
    default:
        return command_new(&options);
    }
}
