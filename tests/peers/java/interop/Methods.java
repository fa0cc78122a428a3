// SPDX-License-Identifier: Apache-2.0 OR MIT

package interop;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.Parser;
import grpc.testing.Testing.BoolValue;
import grpc.testing.Testing.Empty;
import grpc.testing.Testing.LoadReport;
import grpc.testing.Testing.Payload;
import grpc.testing.Testing.SimpleRequest;
import grpc.testing.Testing.SimpleResponse;
import grpc.testing.Testing.StreamingInputCallRequest;
import grpc.testing.Testing.StreamingInputCallResponse;
import grpc.testing.Testing.StreamingOutputCallRequest;
import grpc.testing.Testing.StreamingOutputCallResponse;
import grpc.testing.Testing.TestOrcaReport;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.InputStream;

/** What the cases call and send: of the server and the client alike. */
final class Methods {
    static final Metadata.Key<String> INITIAL =
        Metadata.Key.of("x-grpc-test-echo-initial", Metadata.ASCII_STRING_MARSHALLER);
    static final Metadata.Key<byte[]> TRAILING =
        Metadata.Key.of("x-grpc-test-echo-trailing-bin", Metadata.BINARY_BYTE_MARSHALLER);
    static final Metadata.Key<byte[]> LOAD =
        Metadata.Key.of("endpoint-load-metrics-bin", Metadata.BINARY_BYTE_MARSHALLER);
    static final Metadata.Key<String> CACHE_CONTROL =
        Metadata.Key.of("cache-control", Metadata.ASCII_STRING_MARSHALLER);
    static final String GZIP = "gzip";

    private static final class Messages<T extends MessageLite>
        implements MethodDescriptor.Marshaller<T> {
        private final Parser<T> parser;

        Messages(Parser<T> parser) {
            this.parser = parser;
        }

        @Override
        public InputStream stream(T message) {
            return new ByteArrayInputStream(message.toByteArray());
        }

        @Override
        public T parse(InputStream stream) {
            try {
                return parser.parseFrom(stream);
            } catch (InvalidProtocolBufferException error) {
                throw Status.INTERNAL.withCause(error).asRuntimeException();
            }
        }
    }

    private static <Q extends MessageLite, R extends MessageLite> MethodDescriptor<Q, R> method(
        String name, MethodType type, Parser<Q> requests, Parser<R> responses) {
        return MethodDescriptor.<Q, R>newBuilder()
            .setRequestMarshaller(new Messages<>(requests))
            .setResponseMarshaller(new Messages<>(responses))
            .setType(type)
            .setFullMethodName("grpc.testing." + name)
            .build();
    }

    static final MethodDescriptor<Empty, Empty> EMPTY_CALL =
        method("TestService/EmptyCall", MethodType.UNARY, Empty.parser(), Empty.parser());
    static final MethodDescriptor<SimpleRequest, SimpleResponse> UNARY_CALL =
        method("TestService/UnaryCall", MethodType.UNARY, SimpleRequest.parser(),
            SimpleResponse.parser());
    static final MethodDescriptor<SimpleRequest, SimpleResponse> CACHEABLE_UNARY_CALL =
        method("TestService/CacheableUnaryCall", MethodType.UNARY, SimpleRequest.parser(),
            SimpleResponse.parser());
    static final MethodDescriptor<StreamingOutputCallRequest, StreamingOutputCallResponse>
        STREAMING_OUTPUT_CALL = method("TestService/StreamingOutputCall",
            MethodType.SERVER_STREAMING, StreamingOutputCallRequest.parser(),
            StreamingOutputCallResponse.parser());
    static final MethodDescriptor<StreamingInputCallRequest, StreamingInputCallResponse>
        STREAMING_INPUT_CALL = method("TestService/StreamingInputCall",
            MethodType.CLIENT_STREAMING, StreamingInputCallRequest.parser(),
            StreamingInputCallResponse.parser());
    static final MethodDescriptor<StreamingOutputCallRequest, StreamingOutputCallResponse>
        FULL_DUPLEX_CALL = method("TestService/FullDuplexCall", MethodType.BIDI_STREAMING,
            StreamingOutputCallRequest.parser(), StreamingOutputCallResponse.parser());
    static final MethodDescriptor<StreamingOutputCallRequest, StreamingOutputCallResponse>
        HALF_DUPLEX_CALL = method("TestService/HalfDuplexCall", MethodType.BIDI_STREAMING,
            StreamingOutputCallRequest.parser(), StreamingOutputCallResponse.parser());
    // Nobody serves these.
    static final MethodDescriptor<Empty, Empty> UNIMPLEMENTED_CALL =
        method("TestService/UnimplementedCall", MethodType.UNARY, Empty.parser(), Empty.parser());
    static final MethodDescriptor<Empty, Empty> UNIMPLEMENTED_SERVICE =
        method("UnimplementedService/UnimplementedCall", MethodType.UNARY, Empty.parser(),
            Empty.parser());

    static Payload zeros(int size) {
        return Payload.newBuilder().setBody(ByteString.copyFrom(new byte[size])).build();
    }

    static BoolValue is(boolean value) {
        return BoolValue.newBuilder().setValue(value).build();
    }

    static LoadReport reportOf(TestOrcaReport load) {
        return LoadReport.newBuilder()
            .setCpuUtilization(load.getCpuUtilization())
            .setMemUtilization(load.getMemoryUtilization())
            .addAllRequestCost(load.getRequestCostList())
            .addAllUtilization(load.getUtilizationList())
            .build();
    }

    private Methods() {
    }
}
