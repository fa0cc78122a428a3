/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The mappings between HTTP status, HTTP/2 error and gRPC code. Pure.
 */

#include "rpc/http2/codes.h"

#include <nghttp2/nghttp2.h>

enum bow_code bow__http2_code_of_reset(uint32_t http2_error)
{
    switch (http2_error) {
    case NGHTTP2_REFUSED_STREAM:
        return BOW_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return BOW_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return BOW_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return BOW_PERMISSION_DENIED;
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_PROTOCOL_ERROR:
    case NGHTTP2_INTERNAL_ERROR:
    case NGHTTP2_FLOW_CONTROL_ERROR:
    case NGHTTP2_SETTINGS_TIMEOUT:
    case NGHTTP2_FRAME_SIZE_ERROR:
    case NGHTTP2_COMPRESSION_ERROR:
    case NGHTTP2_CONNECT_ERROR:
        return BOW_INTERNAL;
    default:
        return BOW_UNKNOWN;
    }
}

enum bow_code bow__http2_code_of_http_status(int http_status)
{
    switch (http_status) {
    case 400:
        return BOW_INTERNAL;
    case 401:
        return BOW_UNAUTHENTICATED;
    case 403:
        return BOW_PERMISSION_DENIED;
    case 404:
        return BOW_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return BOW_UNAVAILABLE;
    default:
        return BOW_UNKNOWN;
    }
}

uint32_t bow__http2_reset_of_code(enum bow_code code)
{
    switch (code) {
    case BOW_CANCELLED:
    case BOW_DEADLINE_EXCEEDED:
        return NGHTTP2_CANCEL;
    case BOW_RESOURCE_EXHAUSTED:
        return NGHTTP2_ENHANCE_YOUR_CALM;
    case BOW_PERMISSION_DENIED:
        return NGHTTP2_INADEQUATE_SECURITY;
    default:
        return NGHTTP2_INTERNAL_ERROR;
    }
}
