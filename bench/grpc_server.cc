// SPDX-License-Identifier: Apache-2.0 OR MIT
// The echo server and the stream of bowline_server.c over gRPC's C++ implementation, with its
// callback API. Arguments: service.h. Compiled by tools/bench --grpc.
#include "echo.grpc.pb.h"
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <string>

class EchoService : public bench::Echo::CallbackService
{
    grpc::ServerUnaryReactor *Unary(grpc::CallbackServerContext *context,
                                    const bench::Text *request, bench::Text *reply) override
    {
        reply->set_text(request->text());
        auto *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
};

class Writer : public grpc::ServerWriteReactor<bench::Text>
{
  public:
    Writer(size_t n_bytes, uint64_t n_left) : n_left_(n_left)
    {
        message_.set_text(std::string(n_bytes, 'x'));
        Next();
    }
    void OnWriteDone(bool ok) override
    {
        if (!ok) {
            n_left_ = 0;
        }
        Next();
    }
    void OnDone() override { delete this; }

  private:
    void Next()
    {
        if (n_left_ == 0) {
            Finish(grpc::Status::OK);
            return;
        }
        n_left_--;
        StartWrite(&message_);
    }
    bench::Text message_;
    uint64_t n_left_;
};

class FanService : public bench::Fan::CallbackService
{
  public:
    FanService(size_t n_bytes, uint64_t n_messages) : n_bytes_(n_bytes), n_messages_(n_messages) {}
    grpc::ServerWriteReactor<bench::Text> *Listen(grpc::CallbackServerContext *,
                                                  const bench::Text *) override
    {
        return new Writer(n_bytes_, n_messages_);
    }

  private:
    size_t n_bytes_;
    uint64_t n_messages_;
};

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 5) {
        std::fprintf(stderr, "usage: %s HOST:PORT [BYTES WARMUP CALLS]\n", argv[0]);
        return 2;
    }
    sigset_t signals;
    int signal = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    EchoService echo;
    FanService fan(argc == 5 ? std::strtoull(argv[2], nullptr, 10) : 0,
                   argc == 5 ? std::strtoull(argv[3], nullptr, 10) +
                                   std::strtoull(argv[4], nullptr, 10)
                             : 0);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(argv[1], grpc::InsecureServerCredentials());
    builder.RegisterService(&echo);
    builder.RegisterService(&fan);
    auto server = builder.BuildAndStart();
    if (server == nullptr) {
        return 1;
    }
    sigwait(&signals, &signal);
    server->Shutdown(std::chrono::system_clock::now());
    std::printf("{\"receives\": 0, \"sends\": 0, \"minor_faults\": 0, \"system_calls\": 0}\n");
    return 0;
}
