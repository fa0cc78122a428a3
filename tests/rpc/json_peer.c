/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The messages of these tests for json_oracle.py, with or without what Bowline's generator says. */
#include "tests/rpc/json_fixture.h"
#include "tests/support/message_peer.h"

int main(int argc, char **argv)
{
    json_choose_descriptors(argc, argv);
    return message_peer_run(json_files, JSON_FILES);
}
