#!/usr/bin/env bun
// Nobody moves the conversation while a build runs: what the build sees on disk belongs to the place
// where the conversation stands.
//
//   veto-while-building.ts SESSION_ID -- COMMAND...
//
// Starts the build, and reads ids of entries from stdin, one a line, as an editor would send them:
// each is gone to, or vetoed while the build runs. Runs in Bun, or compiled in Node.

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

const client = await connect({ answers: { session_before_tree: () => ({ cancel: isBuilding }) } });
await client.openSession({ sessionId });
console.log('ready');

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const moved = await client.navigateTree({ sessionId, targetId: line.trim(), summarize: false });
    if (moved.reason === 'cancelledByClient') console.log(`${line}: the build is running`);
    else console.log(`${line}: the conversation stands at ${moved.newLeafId ?? 'its beginning'}`);
  } catch (error) {
    if (!(error instanceof TreelinedError)) throw error;
    console.log(`${line}: ${error.message}`);
  }
}
build.kill();
await client.close();
