/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TLS_HANDLER_H
#define BOWLINE_TLS_HANDLER_H

/* What one connection's handler, and its context, are put together from; see connection.h. */

#include "tls/connection.h"

/* input.c */

size_t bow__tls_on_read(struct bow_handler *handler, const struct bow_buf *bytes);
void bow__tls_deliver_eof(struct bow_tls *tls);

/* output.c */

int bow__tls_on_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                      void *user);
void bow__tls_on_flush(struct bow_handler *handler);
int bow__tls_on_drain(struct bow_handler *handler, struct iovec *pieces, int max);
void bow__tls_on_sent(struct bow_handler *handler, size_t n);
/** Put our close_notify behind what is encrypted. */
void bow__tls_say_goodbye(struct bow_tls *tls);
/** All writes end with `error`, now. */
void bow__tls_abandon_writes(struct bow_tls *tls, int error);

/* name.c */

/** Have `setup`, a server's, ask its on_server_name which context serves a client. */
void bow__tls_choose_by_name(struct bow__tls_setup *setup);

#endif
