/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_DECLARE_H
#define BOWLINE_RPC_SCHEMA_DECLARE_H

#include "rpc/schema/schema.h"

/**
 * Enter all that a file declares into the schema's symbols, with room for what is to be made of
 * each, and the table of the file's messages. Returns 0; -EBADMSG for a name that is none, or is
 * declared twice; -ENOMEM, -EMSGSIZE.
 */
int bow__schema_declare(struct bow_schema *schema, struct bow__schema_file *file,
                        struct bow__text *reason);

#endif
