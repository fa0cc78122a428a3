/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What depends on nghttp2's version, chosen when the build is configured.
 */

#include "rpc/http2/internal.h"

#ifdef BOW__HAVE_NGHTTP2_RESET_LIMIT

void bow__http2_option_no_reset_limit(nghttp2_option *option)
{
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX / 2, UINT64_MAX / 2);
}

#else

void bow__http2_option_no_reset_limit(nghttp2_option *option)
{
    (void)option;
}

#endif

#ifdef BOW__HAVE_NGHTTP2_BLANKS

void bow__http2_option_blanks(nghttp2_option *option)
{
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
}

#else

void bow__http2_option_blanks(nghttp2_option *option)
{
    (void)option;
}

#endif
