// SPDX-License-Identifier: GPL-3.0-or-later
// nodeload.js SOCKET: node under load: its own server and clients on a socket, zlib on the thread pool, timers, a heap that changes.
// Everything is checked.
'use strict';
const fs = require('fs');
const http = require('http');
const zlib = require('zlib');

function wrong(text) {
	fs.writeSync(2, text + '\n');
	process.exit(1);
}

const socketPath = process.argv[2];
const body = (i) => Buffer.alloc(50000, 'body ' + i);
const agent = new http.Agent({ keepAlive: true });

// Each part of the work says once that it has all its descriptors.
let starting = 5;
function started() {
	if (--starting === 0)
		fs.writeSync(1, 'ready\n');
}

function client(i) {
	http.get({ socketPath, agent, path: '/' + i }, (answer) => {
		const parts = [];
		answer.on('data', (part) => parts.push(part));
		answer.on('end', () => {
			if (!Buffer.concat(parts).equals(body(i)))
				wrong('the answer to ' + i + ' is wrong');
			if (i % 1000000 === 0)
				started();
			setTimeout(client, 3, i + 1);
		});
	}).on('error', (e) => wrong(String(e)));
}

function pack(i) {
	const data = body(i);
	zlib.deflate(data, { level: 1 }, (e, packed) => {
		if (e)
			wrong(String(e));
		zlib.inflate(packed, (e2, out) => {
			if (e2 || !out.equals(data))
				wrong('what was packed came out differently');
			if (i % 1000000 === 0)
				started();
			setTimeout(pack, 2, i + 1);
		});
	});
}

// The clocks of the loop and of hrtime differ by up to a millisecond.
function timer() {
	const start = process.hrtime.bigint();
	setTimeout(() => {
		const ms = Number(process.hrtime.bigint() - start) / 1e6;
		if (ms < 3.9 || ms > 10000)
			wrong('a timer of 5 ms took ' + ms);
		timer();
	}, 5);
}

const live = new Map();
let turn = 0;
function heap() {
	for (let k = 0; k < 500; k++) {
		const key = (turn * 500 + k) * 7919 % 5000;
		const old = live.get(key);
		if (old && (old.key !== key || old.list.length !== 20 || old.list[19] !== key + 19))
			wrong('an object has changed');
		live.set(key, { key, list: Array.from({ length: 20 }, (_, i) => key + i) });
	}
	turn++;
	setTimeout(heap, 4);
}

http.createServer((question, answer) => answer.end(body(question.url.slice(1)))).listen(socketPath, () => {
	for (let k = 0; k < 3; k++)
		client(k * 1000000);
	pack(0);
	pack(1000000);
	timer();
	heap();
	process.stdin.on('end', () => process.exit(0));
	process.stdin.resume();
});
