/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Keeping the library, or the plug-in that it is linked into, mapped: it is opened once more, by
 * the name that it was loaded by, as one that is not to be unloaded.
 */

#include "base/keep_loaded.h"

#include <dlfcn.h>
#include <stddef.h>

static const char here = 0;

void bow__keep_loaded(void)
{
    Dl_info found;

    if (dladdr(&here, &found) != 0 && found.dli_fname != NULL) {
        /* NULL for the program itself, which stays. */
        (void)!dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}
