/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_KEEP_LOADED_H
#define BOWLINE_BASE_KEEP_LOADED_H

/*
 * Whether the code of this library may leave the process, by dlclose(). Knows nothing of why.
 */

/** Keep it until the process ends: something will come back to it that nobody waits for. Where
 * it was not loaded on its own it stays anyway. Idempotent. Thread: any. */
void bow__keep_loaded(void);

#endif
