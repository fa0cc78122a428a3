// SPDX-License-Identifier: Apache-2.0 OR MIT

package interop;

import io.grpc.CallOptions;
import io.grpc.ClientStreamTracer;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.ServerStreamTracer;

/**
 * How the last message of a call came. The library tells how long it was on its way, and then how
 * many bytes it has become. The next one is asked for only when this one was looked at.
 */
final class Arrival {
    private static final Context.Key<Arrival> KEY = Context.key("arrival");

    private long onTheWay;
    private long bytes;

    private synchronized void begin(long size) {
        onTheWay = size;
        bytes = 0;
    }

    private synchronized void add(long size) {
        bytes += size;
    }

    synchronized boolean wasCompressed() {
        return bytes != onTheWay;
    }

    /** Of the call that is being served. */
    static Arrival current() {
        return KEY.get();
    }

    /** What a server takes, so that there is one for each call. */
    static ServerStreamTracer.Factory ofCalls() {
        return new ServerStreamTracer.Factory() {
            @Override
            public ServerStreamTracer newServerStreamTracer(String method, Metadata headers) {
                return new Arrival().ofServer();
            }
        };
    }

    private ServerStreamTracer ofServer() {
        return new ServerStreamTracer() {
            @Override
            public Context filterContext(Context context) {
                return context.withValue(KEY, Arrival.this);
            }

            @Override
            public void inboundMessageRead(int number, long size, long unknown) {
                begin(size);
            }

            @Override
            public void inboundUncompressedSize(long size) {
                add(size);
            }
        };
    }

    /** The options of a client's call, with which it is told here. */
    CallOptions of(CallOptions options) {
        return options.withStreamTracerFactory(new ClientStreamTracer.Factory() {
            @Override
            public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info,
                Metadata headers) {
                return ofClient();
            }
        });
    }

    private ClientStreamTracer ofClient() {
        return new ClientStreamTracer() {
            @Override
            public void inboundMessageRead(int number, long size, long unknown) {
                begin(size);
            }

            @Override
            public void inboundUncompressedSize(long size) {
                add(size);
            }
        };
    }
}
