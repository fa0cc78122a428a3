/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline new`: a folder with a small service, to begin with. The texts are of new_files.c; here
 * names are filled in and files written, none over one that is there.
 */
#include "commands.h"
#include "new_files.h"
#include "say.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAME 40

/* What stands for itself in the texts. */
struct names {
    char name[MAX_NAME + 1];    /* "price-list", of files and programs */
    char package[MAX_NAME + 1]; /* "price_list", of the .proto and C */
    char service[MAX_NAME + 1]; /* "PriceList" */
    char upper[MAX_NAME + 1];   /* "PRICE_LIST" */
};

static bool make_names(const char *given, struct names *names)
{
    size_t n_service = 0;
    size_t n = strlen(given);
    bool begins = true;

    if (n == 0 || n > MAX_NAME || !islower((unsigned char)given[0]) || given[n - 1] == '-') {
        return false;
    }
    memset(names, 0, sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)given[i];
        if (!islower(c) && !isdigit(c) && c != '-') {
            return false;
        }
        if (i > 0 && given[i - 1] == '-' && !islower(c)) {
            return false;
        }
        names->name[i] = (char)c;
        names->package[i] = c == '-' ? '_' : (char)c;
        names->upper[i] = (char)toupper((unsigned char)names->package[i]);
        if (c != '-') {
            names->service[n_service++] = begins ? (char)toupper(c) : (char)c;
        }
        begins = c == '-';
    }
    return true;
}

/* "@name@" and so on are filled in. */
static void put_text(FILE *file, const char *text, const struct names *names)
{
    const struct {
        const char *word;
        const char *value;
    } words[] = {{"@name@", names->name},
                 {"@package@", names->package},
                 {"@Service@", names->service},
                 {"@UPPER@", names->upper}};

    while (*text != '\0') {
        size_t i = 0;
        while (i < 4 && strncmp(text, words[i].word, strlen(words[i].word)) != 0) {
            i++;
        }
        if (i < 4) {
            fputs(words[i].value, file);
            text += strlen(words[i].word);
        } else {
            fputc(*text++, file);
        }
    }
}

static int write_file(const struct names *names, const struct new_file *made)
{
    char path[3 * MAX_NAME];
    int length = snprintf(path, sizeof(path), "%s/%s%s", names->name,
                          made->is_named ? names->package : "", made->name);
    int fd =
        length < (int)sizeof(path) ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (file == NULL) {
        return say_failed(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    put_text(file, made->text, names);
    if (fclose(file) != 0) {
        return say_failed(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    printf("  %s\n", path);
    return EXIT_OK;
}

int command_new(const struct options *options)
{
    struct names names;
    int rc = EXIT_OK;

    if (!make_names(options->args[0], &names)) {
        return say_failed(EXIT_USAGE,
                          "\"%s\" is no name for a service: small letters and digits, and single "
                          "dashes with a letter behind, such as price-list, at most %d",
                          options->args[0], MAX_NAME);
    }
    if (mkdir(names.name, 0777) < 0) {
        return say_failed(EXIT_FAILED, "%s: %s", names.name, strerror(errno));
    }
    for (size_t i = 0; i < n_new_files && rc == EXIT_OK; i++) {
        rc = write_file(&names, &new_files[i]);
    }
    if (rc == EXIT_OK) {
        printf("\nbuild and run it:\n"
               "  cd %s && meson setup build && ninja -C build\n"
               "  build/%s-server &\n"
               "  build/%s-client World\n"
               "  bowline call 127.0.0.1:50051 %s.%s/Greet '{\"name\": \"World\"}'\n",
               names.name, names.name, names.name, names.package, names.service);
    }
    return rc;
}
