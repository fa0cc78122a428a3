/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_EXECUTOR_STRAND_H
#define BOWLINE_TRANSPORT_EXECUTOR_STRAND_H

/* What the layers of this library see of a strand beyond the public header. */

#include <bowline/executor.h>

/** Post without asking the rejection handler. Returns as bow_executor_post(). Thread: any. */
int bow__strand_post_internal(struct bow_strand *strand, struct bow_task *task);
/** The same for what closes something down: also accepted after SHUTDOWN while the strand has
 * tasks. -ESHUTDOWN says that none of its tasks runs, and none ever will. */
int bow__strand_post_last(struct bow_strand *strand, struct bow_task *task);

#endif
