/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_DEVICE_PLUGIN_ALLOCATE_H
#define BOWLINE_EXAMPLES_DEVICE_PLUGIN_ALLOCATE_H

/*
 * What a container needs to use devices: their nodes, a variable that says which they are, and a
 * file or folder to read, if there is one. Nothing is remembered: kubelet knows whom it has given
 * which device.
 */

#include "deviceplugin.bow.h"
#include "devices.h"

struct allocate_options {
    const char *env;   /* the variable */
    const char *mount; /* the file or folder; NULL: none */
};

/** Answer `call`, with an error when one of the devices is not there. */
void allocate(struct bow_call *call, const V1beta1__AllocateRequest *request,
              struct devices *devices, const struct allocate_options *options);

#endif
