// SPDX-License-Identifier: MIT
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;

/** Echo KIND PORT, Echo KIND-client PORT CLIENTS ROUNDS: servers that send back what comes, clients that check each byte. */
public class Echo {
	static final int[] SIZES = { 1, 100, 1000, 16384, 70000, 300000 };
	static int port, rounds;

	static byte[] message(int client, int i) {
		byte[] bytes = new byte[SIZES[(client + i) % SIZES.length]];
		new Random(client * 100003L + i).nextBytes(bytes);
		return bytes;
	}

	static void blockingServer() throws Exception {
		ServerSocket listener = new ServerSocket(port, 100, InetAddress.getByName("127.0.0.1"));
		ExecutorService threads = Executors.newCachedThreadPool();
		while (true) {
			Socket socket = listener.accept();
			threads.submit(() -> {
				try (socket) {
					socket.getInputStream().transferTo(socket.getOutputStream());
				}
				return null;
			});
		}
	}

	static void nioServer() throws Exception {
		Selector selector = Selector.open();
		ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", port), 100);
		listener.configureBlocking(false);
		listener.register(selector, SelectionKey.OP_ACCEPT);
		while (true) {
			selector.select();
			for (Iterator<SelectionKey> keys = selector.selectedKeys().iterator(); keys.hasNext(); keys.remove())
				step(selector, keys.next());
		}
	}

	static void step(Selector selector, SelectionKey key) throws IOException {
		if (key.isAcceptable()) {
			SocketChannel accepted = ((ServerSocketChannel) key.channel()).accept();
			accepted.configureBlocking(false);
			accepted.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(65536));
			return;
		}
		SocketChannel channel = (SocketChannel) key.channel();
		ByteBuffer buffer = (ByteBuffer) key.attachment();
		try {
			boolean end = key.isReadable() && channel.read(buffer) < 0;
			buffer.flip();
			channel.write(buffer);
			buffer.compact();
			if (end && buffer.position() == 0)
				channel.close();
			else
				key.interestOps((buffer.hasRemaining() && !end ? SelectionKey.OP_READ : 0) |
						(buffer.position() > 0 ? SelectionKey.OP_WRITE : 0));
		} catch (IOException e) {
			channel.close();
		}
	}

	static void httpServer() throws Exception {
		var server = com.sun.net.httpserver.HttpServer.create(new InetSocketAddress("127.0.0.1", port), 100);
		server.createContext("/", exchange -> {
			byte[] body = exchange.getRequestBody().readAllBytes();
			exchange.sendResponseHeaders(200, body.length);
			exchange.getResponseBody().write(body);
			exchange.close();
		});
		server.setExecutor(Executors.newFixedThreadPool(8));
		server.start();
	}

	static int blockingClient(int number) throws Exception {
		try (Socket socket = new Socket("127.0.0.1", port)) {
			socket.setSoTimeout(50000);
			Thread sender = new Thread(() -> {
				try {
					for (int i = 0; i < rounds; i++)
						socket.getOutputStream().write(message(number, i));
					socket.shutdownOutput();
				} catch (IOException e) {
					throw new UncheckedIOException(e);
				}
			});
			sender.start();
			for (int i = 0; i < rounds; i++)
				check(message(number, i), socket.getInputStream().readNBytes(message(number, i).length));
			sender.join();
			if (socket.getInputStream().read() != -1)
				throw new IOException("no end");
		}
		return rounds;
	}

	static int nioClient(int number) throws Exception {
		try (SocketChannel channel = SocketChannel.open(new InetSocketAddress("127.0.0.1", port)); Selector selector = Selector.open()) {
			channel.configureBlocking(false);
			SelectionKey key = channel.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
			for (int i = 0; i < rounds; i++) {
				ByteBuffer out = ByteBuffer.wrap(message(number, i)), in = ByteBuffer.allocate(out.capacity());
				while (in.hasRemaining()) {
					key.interestOps(SelectionKey.OP_READ | (out.hasRemaining() ? SelectionKey.OP_WRITE : 0));
					selector.select();
					selector.selectedKeys().clear();
					channel.write(out);
					if (channel.read(in) < 0)
						throw new EOFException();
				}
				check(message(number, i), in.array());
			}
		}
		return rounds;
	}

	static final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

	static int httpClient(int number) throws Exception {
		for (int i = 0; i < rounds; i++) {
			var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/"))
				.POST(HttpRequest.BodyPublishers.ofByteArray(message(number, i))).build();
			check(message(number, i), http.send(request, HttpResponse.BodyHandlers.ofByteArray()).body());
		}
		return rounds;
	}

	static void check(byte[] wanted, byte[] got) throws IOException {
		if (!Arrays.equals(wanted, got))
			throw new IOException("other bytes");
	}

	public static void main(String[] arguments) throws Exception {
		port = Integer.parseInt(arguments[1]);
		switch (arguments[0]) {
		case "blocking": blockingServer(); return;
		case "nio": nioServer(); return;
		case "http": httpServer(); return;
		}
		rounds = Integer.parseInt(arguments[3]);
		int clients = Integer.parseInt(arguments[2]), done = 0;
		ExecutorService threads = Executors.newFixedThreadPool(clients);
		List<Future<Integer>> results = new ArrayList<>();
		for (int i = 0; i < clients; i++) {
			int number = i;
			results.add(threads.submit(() -> arguments[0].equals("nio-client") ? nioClient(number) :
				arguments[0].equals("http-client") ? httpClient(number) : blockingClient(number)));
		}
		for (Future<Integer> result : results)
			done += result.get();
		System.out.println(done);
		System.exit(0);
	}
}
