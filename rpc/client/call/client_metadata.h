/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CLIENT_METADATA_H
#define BOWLINE_RPC_CLIENT_CALL_CLIENT_METADATA_H

/*
 * What a call sends along: the caller's metadata, then the parent's trace context, then what
 * interceptors add.
 */

#include "rpc/client/call/client_call.h"

/** Copy what goes along with a call to its memory: the metadata of the options, and the trace
 * context of their parent, if they bring none. Returns 0; -EINVAL and -EMSGSIZE, with the reason;
 * -ENOMEM. */
int bow__client_call_take_metadata(struct bow__client_call *call,
                                   const struct bow_call_options *options,
                                   struct bow__text *reason);
/** An interceptor adds to `list`, which begins with the call's metadata: a trace context of its own
 * takes the place of the parent's. Returns as bow__metadata_add(). Loop. */
int bow__client_call_add_metadata(struct bow__client_call *call, struct bow__metadata_list *list,
                                  const char *key, struct bow_slice value);
/** The same in place of what `list` has of `key`; with data NULL that goes, and nothing comes. */
int bow__client_call_set_metadata(struct bow__client_call *call, struct bow__metadata_list *list,
                                  const char *key, struct bow_slice value);

#endif
