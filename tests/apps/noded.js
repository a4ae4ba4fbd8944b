// SPDX-License-Identifier: MIT
// noded.js KIND PORT: sends back what comes, in one of the ways in which Node serves.
const net = require('net'), http = require('http'), cluster = require('cluster'), childProcess = require('child_process');
const [kind, port] = [process.argv[2], +process.argv[3]];

const echo = (socket) => socket.pipe(socket).on('error', () => socket.destroy());
const echoHttp = (request, response) => request.pipe(response);

function handles() {
	const child = childProcess.fork(__filename, ['child', '0']);
	net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => child.send('take', socket)).listen(port, '127.0.0.1');
	process.on('SIGTERM', () => child.disconnect());
	child.on('exit', () => process.exit(0));
}

const kinds = {
	net: () => net.createServer({ allowHalfOpen: true }, echo).listen(port, '127.0.0.1'),
	http: () => http.createServer(echoHttp).listen(port, '127.0.0.1'),
	handles,
	child: () => {
		process.on('message', (message, socket) => { echo(socket); socket.resume(); });
		process.on('disconnect', () => process.exit(0));
	},
	cluster: () => {
		if (cluster.isWorker)
			return http.createServer(echoHttp).listen(port, '127.0.0.1');
		for (let i = 0; i < 3; i++)
			cluster.fork();
		process.on('SIGTERM', () => cluster.disconnect(() => process.exit(0)));
	},
};
if (kind === 'net' || kind === 'http')
	process.on('SIGTERM', () => process.exit(0));
kinds[kind]();
