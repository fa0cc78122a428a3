/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Flags of the interoperability programs; see the header. */

#include "flags.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct flag *find(const struct flag *flags, const char *name, size_t len)
{
    while (flags->name != NULL &&
           (strlen(flags->name) != len || memcmp(flags->name, name, len) != 0)) {
        flags++;
    }
    return flags->name != NULL ? flags : NULL;
}

static bool set_number(const struct flag *flag, const char *value)
{
    char *end = NULL;

    errno = 0;
    *flag->number = strtoull(value, &end, 10);
    return errno == 0 && end != value && *end == '\0' && value[0] != '-';
}

static bool set(const struct flag *flag, const char *value)
{
    if (flag->text != NULL) {
        *flag->text = value;
        return true;
    }
    if (flag->number != NULL) {
        return set_number(flag, value);
    }
    *flag->truth = strcmp(value, "true") == 0;
    return *flag->truth || strcmp(value, "false") == 0;
}

static bool say(const struct flag *flags, const char *argument, const char *why)
{
    fprintf(stderr, "%s %s; flags are", argument, why);
    for (; flags->name != NULL; flags++) {
        fprintf(stderr, " --%s", flags->name);
    }
    fprintf(stderr, "\n");
    return false;
}

bool flags_read(const struct flag *flags, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + (strncmp(argv[i], "--", 2) == 0 ? 2 : 0);
        const char *equals = strchr(name, '=');
        size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
        const struct flag *flag = name != argv[i] ? find(flags, name, len) : NULL;
        if (flag == NULL) {
            return say(flags, argv[i], "is no flag");
        }
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (value == NULL && flag->truth != NULL) {
            value = "true";
        } else if (value == NULL && i + 1 < argc) {
            value = argv[++i];
        }
        if (value == NULL || !set(flag, value)) {
            return say(flags, argv[i], "is not such a value");
        }
    }
    return true;
}
