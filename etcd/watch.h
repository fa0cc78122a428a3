/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_WATCH_H
#define BOWLINE_ETCD_WATCH_H

/* What the library's own users of a watch need beside <bowline/etcd.h>. On its loop. */

struct bow_etcd_watch;

/** Inside an update that could not be taken: tell it again, after a pause. */
void bow__etcd_watch_again(struct bow_etcd_watch *watch);

#endif
