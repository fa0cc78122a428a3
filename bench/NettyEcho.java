/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The raw server's echo over Netty: its own length-field codec, one event loop, one flush for
 * each batch of reads. Frames go back with the header they came with, as those of the others do.
 * The epoll transport where its library is there, else NIO.
 * Usage: java NettyEcho HOST:PORT
 */

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;

public final class NettyEcho {
    private static final int MAX_FRAME_BYTES = 256 << 10;

    /* Written by the one event loop only. */
    private static volatile long nBatches;

    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object frame) {
            context.write(frame, context.voidPromise());
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            nBatches++;
            context.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int colon = args[0].lastIndexOf(':');
        boolean epoll = Epoll.isAvailable();
        EventLoopGroup group = epoll ? new EpollEventLoopGroup(1) : new NioEventLoopGroup(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.printf(
            "{\"receives\": %d, \"sends\": %d, \"transport\": \"%s\"}%n", nBatches, nBatches,
            epoll ? "epoll" : "NIO")));
        new ServerBootstrap()
            .group(group)
            .channel(epoll ? EpollServerSocketChannel.class : NioServerSocketChannel.class)
            .option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(
                        new LengthFieldBasedFrameDecoder(MAX_FRAME_BYTES, 0, 4), new Echo());
                }
            })
            .bind(args[0].substring(0, colon), Integer.parseInt(args[0].substring(colon + 1)))
            .sync()
            .channel()
            .closeFuture()
            .sync();
    }
}
