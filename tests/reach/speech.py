# SPDX-License-Identifier: MIT
"""What a client says to a victim, so that the victim says the same bytes back: to an echo server, redis, or nginx."""
import os


def question(speech, data):
    if speech == "redis":
        return b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n" % (len(data), data)
    if speech == "http":
        return b"GET /?%s HTTP/1.1\r\nHost: a\r\n\r\n" % data
    return data


def data_of(speech, rng, size):
    """Random bytes that may be in a question."""
    return rng.randbytes((size + 1) // 2).hex().encode()[:size] if speech == "http" else rng.randbytes(size)


class Answers:
    """What a socket brings, in pieces of a wanted size."""
    def __init__(self, sock):
        self.sock, self.rest = sock, bytearray()

    def more(self):
        some = self.sock.recv(1 << 18)
        if not some:
            raise EOFError("the connection has ended early")
        self.rest += some

    def take(self, size):
        while len(self.rest) < size:
            self.more()
        taken = bytes(self.rest[:size])
        del self.rest[:size]
        return taken

    def until(self, end):
        while end not in self.rest:
            self.more()
        return self.take(self.rest.index(end) + len(end))


def answer(speech, sock, size):
    """Bytes that came back for `size` bytes. Nothing may come behind them."""
    some = Answers(sock)
    if speech == "redis":
        size = int(some.until(b"\r\n")[1:])
        data = some.take(size + 2)[:-2]
    elif speech == "http":
        lines = some.until(b"\r\n\r\n").lower().split(b"\r\n")
        size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        data = some.take(size)
    else:
        data = some.take(size)
    if some.rest:
        raise EOFError("more bytes than the answer has")
    return data


def ask(speech, sock, data):
    sock.sendall(question(speech, data))
    return answer(speech, sock, len(data))


# --- the services ---

NGINX = """daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4000; }}
http {{ access_log off; keepalive_requests 1000000; keepalive_timeout 600; large_client_header_buffers 8 256k;
client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
default_type text/plain; server {{ listen {address}:{port}; location / {{ return 200 $args; }} }} }}
"""
HAPROXY = """global
    nbthread 2
    maxconn 400
defaults
    mode tcp
    timeout connect 10s
    timeout client 600s
    timeout server 600s
listen echo
    bind {address}:{port}
    server one 127.0.0.1:{back}
"""
SPEECH = {"echo": "echo", "haproxy": "echo", "redis": "redis", "nginx": "http"}
ENDS = {"haproxy": -15}	# its exit status by SIGTERM
PROGRAM = {"redis": "redis-server", "nginx": "nginx", "haproxy": "haproxy"}


def command(service, folder, address, port, back):
    """Starts the service in a folder of its own."""
    words = {"dir": folder, "address": address, "port": port, "back": back}
    path = os.path.join(folder, "conf")
    if service == "redis":
        return ["redis-server", "--port", str(port), "--bind", address, "--dir", folder, "--save", "", "--maxclients", "4000",
                "--protected-mode", "no"]
    with open(path, "w", encoding="ascii") as conf:
        conf.write((NGINX if service == "nginx" else HAPROXY).format(**words))
    return ["nginx", "-e", f"{folder}/error.log", "-c", path] if service == "nginx" else ["haproxy", "-db", "-f", path]
