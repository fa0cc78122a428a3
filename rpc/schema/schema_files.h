/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_SCHEMA_FILES_H
#define BOWLINE_RPC_SCHEMA_SCHEMA_FILES_H

#include "rpc/schema/schema.h"

/** Say which files each one imports, once all are there. Returns 0; -ENOMEM, -EMSGSIZE. */
int bow__schema_link_files(struct bow_schema *schema, struct bow__text *reason);

#endif
