/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_PROTOC_H
#define BOWLINE_TOOLS_BOWLINE_PROTOC_H

#include "options.h"
#include <bowline/slice.h>

/** Have protoc read the --proto files: a FileDescriptorSet with all imports, from malloc(). Returns
 * EXIT_OK, or what to exit with: it, or protoc, has said why. */
int protoc_run(const struct options *options, struct bow_slice *ret_set);

#endif
