#!/usr/bin/env bun
// Cancels navigations while a build runs, because the files that it builds belong to the current leaf.
//
//   veto-while-building.ts SESSION_ID -- COMMAND...
//
// Starts the build, and reads ids of entries from stdin, one on each line, as an editor would send them. It navigates
// to each entry. While the build runs, the navigation is cancelled, and every client shows the reason. Runs in Bun, or
// compiled in Node.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { connect, TreelinedError } from 'treelined';

const [sessionId, dashes, command, ...args] = process.argv.slice(2);
if (sessionId === undefined || dashes !== '--' || command === undefined) {
  console.error('usage: veto-while-building.ts SESSION_ID -- COMMAND...');
  process.exit(2);
}

const build = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
let isBuilding = true;
build.on('error', (error) => {
  isBuilding = false;
  console.log(`the build cannot be started: ${error.message}`);
});
build.on('exit', (code, signal) => {
  isBuilding = false;
  console.log(`the build has ended with ${signal ?? code}`);
});

const veto = { cancel: true, reason: 'the build is running' };
const client = await connect({ answers: { session_before_tree: () => (isBuilding ? veto : {}) } });
await client.openSession({ sessionId });
console.log('ready');

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const moved = await client.navigateTree({ sessionId, targetId: line.trim(), summarize: false });
    if (moved.cancelled) console.log(`${line}: ${moved.message ?? moved.reason}`);
    else console.log(`${line}: the leaf is ${moved.newLeafId ?? 'before the first entry'}`);
  } catch (error) {
    if (!(error instanceof TreelinedError)) throw error;
    console.log(`${line}: ${error.message}`);
  }
}
build.kill();
await client.close();
