/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_CHILD_H
#define BOWLINE_CODEGEN_CHILD_H

/*
 * protoc-gen-c as a child process: it is given a request on its standard input and
 * answers with a response, as protoc would run it. Its stderr is ours.
 */

#include "codegen/printer.h"
#include "codegen/request.h"

/** Which protoc-gen-c is accepted, by its own version number (1004001 is 1.4.1). */
#define CHILD_MIN_VERSION 1004000u
#define CHILD_END_VERSION 1006000u

/**
 * Run `program` (looked up on PATH when it has no slash) on `request`. Returns its
 * response; NULL when there is none, with the reason and its remedy in `*ret_error`.
 */
Bowline__Codegen__Response *child_run(struct memory *memory, const char *program,
                                      const Bowline__Codegen__Request *request,
                                      const char **ret_error);

/** Whether the files are from a version that we know, and take warnings in the headers out of
 * the user's sight. Returns NULL, or what is wrong. */
const char *child_check_files(struct memory *memory, const char *program,
                              Bowline__Codegen__Response *response);

#endif
