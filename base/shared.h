/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_SHARED_H
#define BOWLINE_BASE_SHARED_H

/*
 * BOW__SHARED marks an internal function that our other libraries (libbowline-tls,
 * libbowline-otel) link. It is exported under BOWLINE_PRIVATE in bowline.map, with no promise:
 * libraries of one build belong together.
 */

#include <bowline/visibility.h>

#define BOW__SHARED BOW_EXPORT

#endif
