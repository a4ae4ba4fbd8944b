#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""httpd.py PORT FOLDER [CERTIFICATE KEY]: a threaded file server; ends by SIGTERM as other servers do."""
import functools
import http.server
import signal
import ssl
import sys

port, folder = int(sys.argv[1]), sys.argv[2]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        """Sends back what came."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", port), functools.partial(Handler, directory=folder))
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[3:])
    server.socket = context.wrap_socket(server.socket, server_side=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server.serve_forever()
