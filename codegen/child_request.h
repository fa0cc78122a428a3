/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_CHILD_REQUEST_H
#define BOWLINE_CODEGEN_CHILD_REQUEST_H

/*
 * The request as protoc-gen-c is to see it: without the services, of which it would
 * make C that does not compile; without extensions, of which it makes nothing; and
 * without imports that then bring no type, so that a file imported for its options
 * only need not exist in C.
 */

#include "codegen/model.h"

/** A copy of `request` (sharing what is the same) with the child's own parameter. */
Bowline__Codegen__Request *child_request(const struct model *model,
                                         const Bowline__Codegen__Request *request,
                                         const struct parameters *parameters);

#endif
