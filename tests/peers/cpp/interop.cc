// SPDX-License-Identifier: Apache-2.0 OR MIT
// gRPC's C++ implementation in the public interoperability cases:
//
//     interop server --port=N [--use_tls=true --cert_file=FILE --key_file=FILE]
//     interop client --server_host=HOST --server_port=N --test_case=NAME [--use_tls=true
//     --ca_file=FILE
//                    --server_host_override=NAME]
//
// A server prints its port and ends with its standard input.
#include "testing.grpc.pb.h"
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <grpcpp/grpcpp.h>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

// What the library has for its own tests: how the last message of a call came.
uint32_t grpc_call_test_only_get_message_flags(grpc_call *call);
static const uint32_t kCompressed = 0xc0000000u; // it is, or was

namespace grpc
{
namespace testing
{

struct InteropServerContextInspector {
    static bool WasCompressed(const ServerContextBase &context)
    {
        return (grpc_call_test_only_get_message_flags(context.call_.call) & kCompressed) != 0;
    }
};

struct InteropClientContextInspector {
    static bool WasCompressed(const ClientContext &context)
    {
        return (grpc_call_test_only_get_message_flags(context.call_) & kCompressed) != 0;
    }
};

} // namespace testing
} // namespace grpc

using grpc::ClientContext;
using grpc::ServerContext;
using grpc::Status;
using grpc::StatusCode;
using namespace grpc::testing;

static const char kInitial[] = "x-grpc-test-echo-initial";
static const char kTrailing[] = "x-grpc-test-echo-trailing-bin";

static std::string Zeros(size_t size)
{
    return std::string(size, '\0');
}

// The server

static void EchoMetadata(ServerContext *context)
{
    for (const auto &entry : context->client_metadata()) {
        std::string key(entry.first.data(), entry.first.size());
        std::string value(entry.second.data(), entry.second.size());
        if (key == kInitial) {
            context->AddInitialMetadata(key, value);
        } else if (key == kTrailing) {
            context->AddTrailingMetadata(key, value);
        }
    }
}

template <typename Request> static Status AskedFor(const Request &request)
{
    const EchoStatus &status = request.response_status();
    return status.code() == 0 ? Status::OK
                              : Status(static_cast<StatusCode>(status.code()), status.message());
}

template <typename Request>
static bool CameAsExpected(const ServerContext &context, const Request &request)
{
    return !request.has_expect_compressed() ||
           request.expect_compressed().value() ==
               InteropServerContextInspector::WasCompressed(context);
}

static Status Unexpected()
{
    return Status(StatusCode::INVALID_ARGUMENT, "the message came otherwise than it says");
}

class Service : public TestService::Service
{
    Status EmptyCall(ServerContext *context, const Empty *, Empty *) override
    {
        EchoMetadata(context);
        return Status::OK;
    }

    Status UnaryCall(ServerContext *context, const SimpleRequest *request,
                     SimpleResponse *response) override
    {
        EchoMetadata(context);
        if (!CameAsExpected(*context, *request)) {
            return Unexpected();
        }
        if (request->response_compressed().value()) {
            context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
        }
        if (request->has_orca_per_query_report()) {
            const TestOrcaReport &asked = request->orca_per_query_report();
            LoadReport report;
            report.set_cpu_utilization(asked.cpu_utilization());
            report.set_mem_utilization(asked.memory_utilization());
            *report.mutable_request_cost() = asked.request_cost();
            *report.mutable_utilization() = asked.utilization();
            context->AddTrailingMetadata("endpoint-load-metrics-bin", report.SerializeAsString());
        }
        response->mutable_payload()->set_body(Zeros(request->response_size()));
        if (request->fill_server_id()) {
            response->set_server_id("cpp-" + std::to_string(getpid()));
        }
        return AskedFor(*request);
    }

    Status CacheableUnaryCall(ServerContext *context, const SimpleRequest *request,
                              SimpleResponse *response) override
    {
        context->AddInitialMetadata("cache-control", "max-age=60, public");
        return UnaryCall(context, request, response);
    }

    template <typename Writer>
    static bool Pour(const StreamingOutputCallRequest &request, Writer *writer)
    {
        bool going = true;
        for (const ResponseParameters &parameters : request.response_parameters()) {
            std::this_thread::sleep_for(std::chrono::microseconds(parameters.interval_us()));
            StreamingOutputCallResponse response;
            response.mutable_payload()->set_body(Zeros(parameters.size()));
            grpc::WriteOptions options;
            if (parameters.has_compressed() && !parameters.compressed().value()) {
                options.set_no_compression();
            }
            going = going && writer->Write(response, options);
        }
        return going;
    }

    Status StreamingOutputCall(ServerContext *context, const StreamingOutputCallRequest *request,
                               grpc::ServerWriter<StreamingOutputCallResponse> *writer) override
    {
        EchoMetadata(context);
        for (const ResponseParameters &parameters : request->response_parameters()) {
            if (parameters.compressed().value()) {
                context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
            }
        }
        Pour(*request, writer);
        return AskedFor(*request);
    }

    Status StreamingInputCall(ServerContext *context,
                              grpc::ServerReader<StreamingInputCallRequest> *reader,
                              StreamingInputCallResponse *response) override
    {
        StreamingInputCallRequest request;
        size_t size = 0;
        while (reader->Read(&request)) {
            if (!CameAsExpected(*context, request)) {
                return Unexpected();
            }
            size += request.payload().body().size();
        }
        response->set_aggregated_payload_size(static_cast<int>(size));
        return Status::OK;
    }

    using Duplex =
        grpc::ServerReaderWriter<StreamingOutputCallResponse, StreamingOutputCallRequest>;

    Status FullDuplexCall(ServerContext *context, Duplex *stream) override
    {
        EchoMetadata(context);
        StreamingOutputCallRequest request;
        while (stream->Read(&request)) {
            if (!AskedFor(request).ok()) {
                return AskedFor(request);
            }
            Pour(request, stream);
        }
        return Status::OK;
    }

    Status HalfDuplexCall(ServerContext *, Duplex *stream) override
    {
        std::vector<StreamingOutputCallRequest> requests;
        StreamingOutputCallRequest request;
        while (stream->Read(&request)) {
            requests.push_back(request);
        }
        for (const auto &one : requests) {
            Pour(one, stream);
        }
        return Status::OK;
    }
};

using Flags = std::map<std::string, std::string>;

static std::string ReadFile(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

static int Serve(Flags &flags)
{
    Service service;
    grpc::ServerBuilder builder;
    auto credentials = grpc::InsecureServerCredentials();
    int port = 0;
    if (flags["use_tls"] == "true") {
        grpc::SslServerCredentialsOptions options;
        options.pem_key_cert_pairs.push_back(
            {ReadFile(flags["key_file"]), ReadFile(flags["cert_file"])});
        credentials = grpc::SslServerCredentials(options);
    }
    builder.AddListeningPort("127.0.0.1:" + flags["port"], credentials, &port);
    builder.RegisterService(&service);
    auto server = builder.BuildAndStart();
    std::cout << port << std::endl;
    signal(SIGTERM, SIG_IGN); // the input ends as well
    std::string line;
    std::getline(std::cin, line);
    server->Shutdown();
    return 0;
}

// The client

static void Expect(bool is_met, const std::string &what)
{
    if (!is_met) {
        std::cerr << "expected " << what << std::endl;
        std::exit(1);
    }
}

static void ExpectStatus(const Status &status, StatusCode code)
{
    Expect(status.error_code() == code, "code " + std::to_string(code) + ", not " +
                                            std::to_string(status.error_code()) + ": " +
                                            status.error_message());
}

struct Context : ClientContext {
    Context()
    {
        set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    }
};

using Stub = TestService::Stub;

static SimpleRequest Large()
{
    SimpleRequest request;
    request.set_response_size(314159);
    request.mutable_payload()->set_body(Zeros(271828));
    return request;
}

static void EmptyUnary(Stub &stub)
{
    Context context;
    Empty request, response;
    ExpectStatus(stub.EmptyCall(&context, request, &response), StatusCode::OK);
}

static void CallLarge(Stub &stub, const SimpleRequest &request, bool compress, StatusCode code)
{
    Context context;
    SimpleResponse response;
    if (compress) {
        context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    }
    ExpectStatus(stub.UnaryCall(&context, request, &response), code);
    if (code == StatusCode::OK) {
        Expect(response.payload().body() == Zeros(314159), "a payload of 314159 zeros");
        if (request.has_response_compressed()) {
            Expect(InteropClientContextInspector::WasCompressed(context) ==
                       request.response_compressed().value(),
                   "a response compressed as it was asked for");
        }
    }
}

static void LargeUnary(Stub &stub)
{
    CallLarge(stub, Large(), false, StatusCode::OK);
}

static void ClientCompressedUnary(Stub &stub)
{
    SimpleRequest request = Large();
    request.mutable_expect_compressed()->set_value(true);
    CallLarge(stub, request, false, StatusCode::INVALID_ARGUMENT);
    CallLarge(stub, request, true, StatusCode::OK);
    request.mutable_expect_compressed()->set_value(false);
    CallLarge(stub, request, false, StatusCode::OK);
}

static void ServerCompressedUnary(Stub &stub)
{
    for (bool compressed : {true, false}) {
        SimpleRequest request = Large();
        request.mutable_response_compressed()->set_value(compressed);
        CallLarge(stub, request, false, StatusCode::OK);
    }
}

static void CacheableUnary(Stub &stub)
{
    SimpleRequest request;
    SimpleResponse responses[2];
    request.mutable_payload()->set_body("123456");
    for (auto &response : responses) {
        Context context;
        context.AddMetadata("x-user-ip", "1.2.3.4");
        ExpectStatus(stub.CacheableUnaryCall(&context, request, &response), StatusCode::OK);
    }
    Expect(responses[0].payload().body() == responses[1].payload().body(), "two equal responses");
}

static void StreamIn(Stub &stub, const std::vector<size_t> &sizes, int total)
{
    Context context;
    StreamingInputCallResponse response;
    auto stream = stub.StreamingInputCall(&context, &response);
    for (size_t size : sizes) {
        StreamingInputCallRequest request;
        request.mutable_payload()->set_body(Zeros(size));
        Expect(stream->Write(request), "a request to be taken");
    }
    stream->WritesDone();
    ExpectStatus(stream->Finish(), StatusCode::OK);
    Expect(response.aggregated_payload_size() == total, std::to_string(total) + " bytes in all");
}

static void ClientStreaming(Stub &stub)
{
    StreamIn(stub, {27182, 8, 1828, 45904}, 74922);
}

static void StreamLying(Stub &stub)
{
    Context context;
    StreamingInputCallResponse response;
    StreamingInputCallRequest request;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    auto stream = stub.StreamingInputCall(&context, &response);
    request.mutable_expect_compressed()->set_value(true);
    request.mutable_payload()->set_body(Zeros(27182));
    stream->Write(request, grpc::WriteOptions().set_no_compression());
    stream->WritesDone();
    ExpectStatus(stream->Finish(), StatusCode::INVALID_ARGUMENT);
}

static void ClientCompressedStreaming(Stub &stub)
{
    StreamLying(stub);
    Context context;
    StreamingInputCallResponse response;
    StreamingInputCallRequest request;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    auto stream = stub.StreamingInputCall(&context, &response);
    request.mutable_expect_compressed()->set_value(true);
    request.mutable_payload()->set_body(Zeros(27182));
    Expect(stream->Write(request), "the first request to be taken");
    request.mutable_expect_compressed()->set_value(false);
    request.mutable_payload()->set_body(Zeros(45904));
    Expect(stream->Write(request, grpc::WriteOptions().set_no_compression()), "the second, too");
    stream->WritesDone();
    ExpectStatus(stream->Finish(), StatusCode::OK);
    Expect(response.aggregated_payload_size() == 73086, "73086 bytes in all");
}

static StreamingOutputCallRequest Output(const std::vector<int> &sizes)
{
    StreamingOutputCallRequest request;
    for (int size : sizes) {
        request.add_response_parameters()->set_size(size);
    }
    return request;
}

static void StreamOut(Stub &stub, const StreamingOutputCallRequest &request)
{
    Context context;
    StreamingOutputCallResponse response;
    auto stream = stub.StreamingOutputCall(&context, request);
    for (const ResponseParameters &parameters : request.response_parameters()) {
        Expect(stream->Read(&response), "a response");
        Expect(response.payload().body() == Zeros(parameters.size()), "zeros as asked for");
        if (parameters.has_compressed()) {
            Expect(InteropClientContextInspector::WasCompressed(context) ==
                       parameters.compressed().value(),
                   "a response compressed as it was asked for");
        }
    }
    Expect(!stream->Read(&response), "no more");
    ExpectStatus(stream->Finish(), StatusCode::OK);
}

static void ServerStreaming(Stub &stub)
{
    StreamOut(stub, Output({31415, 9, 2653, 58979}));
}

static void ServerCompressedStreaming(Stub &stub)
{
    StreamingOutputCallRequest request = Output({31415, 92653});
    request.mutable_response_parameters(0)->mutable_compressed()->set_value(true);
    request.mutable_response_parameters(1)->mutable_compressed()->set_value(false);
    StreamOut(stub, request);
}

template <typename Stream> static void Exchange(Stream &stream, size_t sent, int asked)
{
    StreamingOutputCallRequest request = Output({asked});
    StreamingOutputCallResponse response;
    request.mutable_payload()->set_body(Zeros(sent));
    Expect(stream->Write(request), "a request to be taken");
    Expect(stream->Read(&response), "a response");
    Expect(response.payload().body() == Zeros(asked), "zeros as asked for");
}

static void PingPong(Stub &stub)
{
    Context context;
    StreamingOutputCallResponse response;
    auto stream = stub.FullDuplexCall(&context);
    Exchange(stream, 27182, 31415);
    Exchange(stream, 8, 9);
    Exchange(stream, 1828, 2653);
    Exchange(stream, 45904, 58979);
    stream->WritesDone();
    Expect(!stream->Read(&response), "no more");
    ExpectStatus(stream->Finish(), StatusCode::OK);
}

static void EmptyStream(Stub &stub)
{
    Context context;
    StreamingOutputCallResponse response;
    auto stream = stub.FullDuplexCall(&context);
    stream->WritesDone();
    Expect(!stream->Read(&response), "no response");
    ExpectStatus(stream->Finish(), StatusCode::OK);
}

static void ExpectMetadata(const ClientContext &context)
{
    const auto &initial = context.GetServerInitialMetadata();
    const auto &trailing = context.GetServerTrailingMetadata();
    auto first = initial.find(kInitial);
    auto last = trailing.find(kTrailing);
    Expect(first != initial.end() && first->second == "test_initial_metadata_value", kInitial);
    Expect(last != trailing.end() && last->second == "\xab\xab\xab", kTrailing);
}

static void CustomMetadata(Stub &stub)
{
    Context unary, duplex;
    SimpleResponse response;
    for (ClientContext *context :
         {static_cast<ClientContext *>(&unary), static_cast<ClientContext *>(&duplex)}) {
        context->AddMetadata(kInitial, "test_initial_metadata_value");
        context->AddMetadata(kTrailing, "\xab\xab\xab");
    }
    ExpectStatus(stub.UnaryCall(&unary, Large(), &response), StatusCode::OK);
    ExpectMetadata(unary);
    auto stream = stub.FullDuplexCall(&duplex);
    Exchange(stream, 271828, 314159);
    stream->WritesDone();
    ExpectStatus(stream->Finish(), StatusCode::OK);
    ExpectMetadata(duplex);
}

static void FailUnary(Stub &stub, const std::string &message)
{
    Context context;
    SimpleRequest request;
    SimpleResponse response;
    request.mutable_response_status()->set_code(StatusCode::UNKNOWN);
    request.mutable_response_status()->set_message(message);
    Status status = stub.UnaryCall(&context, request, &response);
    ExpectStatus(status, StatusCode::UNKNOWN);
    Expect(status.error_message() == message, message);
}

static void StatusCodeAndMessage(Stub &stub)
{
    FailUnary(stub, "test status message");
    Context context;
    StreamingOutputCallRequest request;
    request.mutable_response_status()->set_code(StatusCode::UNKNOWN);
    request.mutable_response_status()->set_message("test status message");
    auto stream = stub.FullDuplexCall(&context);
    stream->Write(request);
    stream->WritesDone();
    Status status = stream->Finish();
    ExpectStatus(status, StatusCode::UNKNOWN);
    Expect(status.error_message() == "test status message", "its words");
}

static void SpecialStatusMessage(Stub &stub)
{
    FailUnary(stub, "\t\ntest with whitespace\r\nand Unicode BMP \xE2\x98\xBA and non-BMP "
                    "\xF0\x9F\x98\x88\t\n");
}

static void UnimplementedMethod(Stub &stub)
{
    Context context;
    Empty request, response;
    ExpectStatus(stub.UnimplementedCall(&context, request, &response), StatusCode::UNIMPLEMENTED);
}

static void CancelAfterBegin(Stub &stub)
{
    Context context;
    StreamingInputCallResponse response;
    auto stream = stub.StreamingInputCall(&context, &response);
    context.TryCancel();
    ExpectStatus(stream->Finish(), StatusCode::CANCELLED);
}

static void CancelAfterFirstResponse(Stub &stub)
{
    Context context;
    auto stream = stub.FullDuplexCall(&context);
    Exchange(stream, 27182, 31415);
    context.TryCancel();
    ExpectStatus(stream->Finish(), StatusCode::CANCELLED);
}

static void TimeoutOnSleepingServer(Stub &stub)
{
    ClientContext context;
    StreamingOutputCallRequest request;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(1));
    request.mutable_payload()->set_body(Zeros(27182));
    auto stream = stub.FullDuplexCall(&context);
    stream->Write(request);
    ExpectStatus(stream->Finish(), StatusCode::DEADLINE_EXCEEDED);
}

static void PickFirstUnary(Stub &stub)
{
    std::set<std::string> ids;
    for (int i = 0; i < 100; i++) {
        Context context;
        SimpleRequest request;
        SimpleResponse response;
        request.set_fill_server_id(true);
        ExpectStatus(stub.UnaryCall(&context, request, &response), StatusCode::OK);
        ids.insert(response.server_id());
    }
    Expect(ids.size() == 1 && ids.count("") == 0, "all calls to go to one server");
}

static const std::vector<std::pair<std::string, std::function<void(Stub &)>>> kCases = {
    {"empty_unary", EmptyUnary},
    {"large_unary", LargeUnary},
    {"cacheable_unary", CacheableUnary},
    {"client_compressed_unary", ClientCompressedUnary},
    {"server_compressed_unary", ServerCompressedUnary},
    {"client_streaming", ClientStreaming},
    {"client_compressed_streaming", ClientCompressedStreaming},
    {"server_streaming", ServerStreaming},
    {"server_compressed_streaming", ServerCompressedStreaming},
    {"ping_pong", PingPong},
    {"empty_stream", EmptyStream},
    {"custom_metadata", CustomMetadata},
    {"status_code_and_message", StatusCodeAndMessage},
    {"special_status_message", SpecialStatusMessage},
    {"unimplemented_method", UnimplementedMethod},
    {"cancel_after_begin", CancelAfterBegin},
    {"cancel_after_first_response", CancelAfterFirstResponse},
    {"timeout_on_sleeping_server", TimeoutOnSleepingServer},
    {"pick_first_unary", PickFirstUnary},
};

static std::shared_ptr<grpc::Channel> Connect(Flags &flags)
{
    std::string target = flags["server_host"] + ":" + flags["server_port"];
    grpc::ChannelArguments arguments;
    auto credentials = grpc::InsecureChannelCredentials();
    if (flags["use_tls"] == "true") {
        grpc::SslCredentialsOptions options;
        options.pem_root_certs = ReadFile(flags["ca_file"]);
        credentials = grpc::SslCredentials(options);
        arguments.SetSslTargetNameOverride(flags["server_host_override"]);
    }
    return grpc::CreateCustomChannel(target, credentials, arguments);
}

static int RunCase(Flags &flags)
{
    auto channel = Connect(flags);
    Context context;
    for (const auto &one : kCases) {
        if (flags["test_case"] == "list") {
            std::cout << one.first << "\n";
        } else if (flags["test_case"] == one.first) {
            Stub stub(channel);
            one.second(stub);
            return 0;
        }
    }
    if (flags["test_case"] == "unimplemented_service") {
        UnimplementedService::Stub stub(channel);
        Empty request, response;
        ExpectStatus(stub.UnimplementedCall(&context, request, &response),
                     StatusCode::UNIMPLEMENTED);
        return 0;
    }
    if (flags["test_case"] == "list") {
        std::cout << "unimplemented_service\n";
        return 0;
    }
    return 2;
}

int main(int argc, char **argv)
{
    Flags flags;
    for (int i = 2; i < argc; i++) {
        std::string word = argv[i];
        size_t equals = word.find('=');
        flags[word.substr(2, equals - 2)] = equals != word.npos ? word.substr(equals + 1) : "true";
    }
    return argc > 1 && std::string(argv[1]) == "server" ? Serve(flags) : RunCase(flags);
}
