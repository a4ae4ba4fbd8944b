// SPDX-License-Identifier: MIT
// node.js KIND PORT CLIENTS ROUNDS: clients that check each byte that comes back.
const net = require('net'), http = require('http'), crypto = require('crypto');
const [kind, port, clients, rounds] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const sizes = [1, 100, 1000, 16384, 70000, 300000];

function message(number, i) {
	const seed = crypto.createHash('sha512').update(number + '.' + i).digest();
	return Buffer.alloc(sizes[(number + i) % sizes.length], seed);
}

function overNet(number) {
	return new Promise((resolve, reject) => {
		const hash = crypto.createHash('sha256'), wanted = crypto.createHash('sha256');
		const socket = net.connect(port, '127.0.0.1', async () => {
			for (let i = 0; i < rounds; i++) {
				const data = message(number, i);
				wanted.update(data);
				if (!socket.write(data))
					await new Promise((drained) => socket.once('drain', drained));
			}
			socket.end();
		});
		socket.on('data', (data) => hash.update(data));
		socket.on('error', reject);
		socket.on('end', () => hash.digest('hex') === wanted.digest('hex') ? resolve(rounds) : reject(new Error('other bytes')));
	});
}

const agent = new http.Agent({ keepAlive: true, maxSockets: clients });

function post(data) {
	return new Promise((resolve, reject) => {
		const request = http.request({ host: '127.0.0.1', port, method: 'POST', agent }, (response) => {
			const parts = [];
			response.on('data', (part) => parts.push(part));
			response.on('end', () => Buffer.concat(parts).equals(data) ? resolve() : reject(new Error('other bytes')));
		});
		request.on('error', reject);
		request.end(data);
	});
}

async function overHttp(number) {
	for (let i = 0; i < rounds; i++)
		await post(message(number, i));
	return rounds;
}

const one = kind === 'net' ? overNet : overHttp;
Promise.all(Array.from({ length: clients }, (_, number) => one(number))).then((done) => {
	console.log(done.reduce((a, b) => a + b, 0));
	process.exit(0);
}, (error) => {
	console.log(error);
	process.exit(1);
});
