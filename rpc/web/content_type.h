/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_CONTENT_TYPE_H
#define BOWLINE_RPC_WEB_CONTENT_TYPE_H

/* Content types, and which protocol and codec each stands for. */

#include "rpc/web/web.h"

/** What a request's content type, with parameters or without, says. Returns whether it is one of
 * ours. */
bool bow__web_content_type_read(struct bow_slice text, enum bow__web_kind *ret_kind,
                                bool *ret_is_json);
/** That of the answer to it. */
const char *bow__web_content_type(enum bow__web_kind kind, bool is_json);
/** All of them for a person or a program that named none, as Accept-Post has them. */
const char *bow__web_content_types(void);

#endif
