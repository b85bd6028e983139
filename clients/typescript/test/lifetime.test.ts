// The start and the end of the daemon: versions, deadlines, its death, and the end of its stdin.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connect, type ConnectOptions, TreelinedError } from 'treelined';
import { command, conversation, folder, packageDir, start } from './fixture.js';

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test('close answers open calls, and leaves no process', async (t) => {
  const client = await start(t);
  const { pid } = client;
  assert(pid !== undefined && isAlive(pid));
  const asked = client.createSession({ name: 'the last wish' });
  await client.close();
  assert.equal((await asked).session.name, 'the last wish');
  assert.equal(isAlive(pid), false);
  const why = await client.closed;
  assert.equal(why.details.exitCode, 0);
  await assert.rejects(client.getLeaf(), { kind: 'disconnected' });
  await client.close();
});

test('close aborts open questions', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  const asked = new Promise<AbortSignal>((resolve) => {
    client.answer('session_before_tree', (_, signal) => {
      resolve(signal);
      return new Promise(() => {});
    });
  });
  const moving = client.navigateTree({ targetId: 'a1' });
  const signal = await asked;
  await client.close();
  assert.equal((await moving).reason, 'aborted');
  assert.equal(signal.aborted, true);
});

test('await using closes the client', async () => {
  const client = await connect({ command });
  const dispose = client[Symbol.asyncDispose];
  await dispose.call(client);
  assert.equal((await client.closed).kind, 'disconnected');
});

test('the death of the daemon fails every open call', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  const sessions = [await conversation(client), await conversation(client)];
  let asked = 0;
  const bothAsked = new Promise<void>((resolve) => {
    client.answer('session_before_tree', () => {
      asked += 1;
      if (asked === sessions.length) resolve();
      return new Promise(() => {});
    });
  });
  const calls = sessions.map((sessionId) => client.navigateTree({ sessionId, targetId: 'a1' }));
  await bothAsked;
  assert(client.pid);
  process.kill(client.pid, 'SIGKILL');
  for (const call of [...calls, client.getLeaf()]) {
    await assert.rejects(call, (error) => {
      assert(error instanceof TreelinedError);
      assert.equal(error.kind, 'disconnected');
      assert.equal(error.details.signal, 'SIGKILL');
      assert.match(error.message, /ended by SIGKILL/);
      return true;
    });
  }
  assert.equal((await client.closed).kind, 'disconnected');
  await assert.rejects(client.getLeaf(), { kind: 'disconnected' });
});

test('shutdown ends the daemon with exit code 0', async (t) => {
  const client = await start(t);
  await client.shutdown();
  assert.equal((await client.closed).details.exitCode, 0);
});

test('a daemon that cannot be started is disconnected with the cause', async () => {
  await assert.rejects(connect({ command: '/nowhere/treelined' }), {
    kind: 'disconnected',
    message: /cannot start \/nowhere\/treelined: .*ENOENT/,
  });
});

// The error for a missing program was once only ENOENT, the same as for a missing folder.
test('the error for a missing program names the PATH and a remedy', async () => {
  const missing = (options: ConnectOptions) =>
    connect(options).then(
      () => assert.fail(),
      (error: unknown) => String(error),
    );
  const env = { PATH: '/no/bin:/no/sbin' };
  assert.match(
    await missing({ command: 'no-such-treelined', env }),
    /tried: no-such-treelined on the PATH \(\/no\/bin:\/no\/sbin\)\. Install it with `cargo install --path \.`.*connect\(\{ command: /,
  );
  assert.doesNotMatch(await missing({ command: '/nowhere/treelined' }), /PATH/);
  assert.match(await missing({ command, cwd: '/nowhere' }), /no folder \/nowhere to start it in/);
});

// A response arrives outside of the call, so stacks once began in the reader of the pipe.
// Bun does not show async functions in stacks.
const isBun = 'bun' in process.versions;

test('the stack of an error contains the caller', { skip: isBun }, async (t) => {
  // The question is never answered. SIGSTOP alone is not enough: the daemon can still answer before it stops.
  const client = await start(t, { answers: { session_before_tree: () => new Promise(() => {}) } });
  const asks = async (): Promise<void> => {
    await client.getEntry({ entryId: 'nothing' });
  };
  const waits = async (): Promise<void> => {
    await client.navigateTree({ targetId: 'a1' }, { timeoutMs: 50 });
  };
  await conversation(client);
  const stackOf = (call: () => Promise<void>) =>
    call().then(
      () => assert.fail(),
      (error: unknown) => (error as Error).stack ?? '',
    );
  assert.match(await stackOf(asks), /^TreelinedError: get_entry: [^]*lifetime\.test[^]*/);
  assert.match(await stackOf(asks), /asks/);
  assert.match(await stackOf(waits), /waits/);
  await client.close();
  assert.match(await stackOf(asks), /asks/);
});

// A program that did not close its client once never ended, since the daemon's pipes kept it alive.
test('a client that is not closed does not keep the program alive', { skip: isBun }, async (t) => {
  const script = join(await folder(t), 'forgetful.mjs');
  const client = JSON.stringify(new URL('dist/index.js', packageDir).href);
  await writeFile(
    script,
    `import { connect } from ${client};
     const client = await connect({
       command: process.argv[2],
       sessionDir: process.argv[3],
       answers: { session_before_tree: () => ({ cancel: true }) },
     });
     client.on('session_opened', () => {});
     const { session } = await client.createSession({ name: 'forgotten' });
     console.log(session.name, client.pid);`,
  );
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [script, command, await folder(t)],
    { timeout: 30_000 },
  );
  const [name, pid] = stdout.trim().split(' ');
  assert.equal(name, 'forgotten');
  for (let tries = 0; isAlive(Number(pid)) && tries < 100; tries += 1) await setTimeout(100);
  assert.equal(isAlive(Number(pid)), false, 'the daemon is gone too');
});

test('awaiting closed keeps the program alive', async (t) => {
  const script = join(await folder(t), 'waiting.mjs');
  const client = JSON.stringify(new URL('dist/index.js', packageDir).href);
  await writeFile(
    script,
    `import { connect } from ${client};
     const client = await connect({ command: process.argv[2] });
     setTimeout(() => process.kill(client.pid), 300).unref();
     console.log((await client.closed).kind);`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [script, command]);
  assert.equal(stdout, 'disconnected\n');
});

test('the error of a failed start quotes stderr', async () => {
  await assert.rejects(connect({ command, args: ['--no-such-option'] }), {
    kind: 'disconnected',
    message: /exit code 2: .*--no-such-option/s,
  });
});

test('a program that is not a daemon is recognized', async () => {
  await assert.rejects(connect({ command: 'echo', args: ['hello'] }), {
    kind: 'disconnected',
    message: /not a treelined daemon: it wrote "hello"/,
  });
});

/** Makes a fake daemon, which speaks another version or never responds. */
async function impostor(t: test.TestContext, answer: string): Promise<[string, string[]]> {
  const script = join(await folder(t), 'daemon.mjs');
  await writeFile(
    script,
    `import { createInterface } from 'node:readline';
     for await (const line of createInterface({ input: process.stdin })) {
       const { id, method } = JSON.parse(line);
       ${answer}
     }`,
  );
  return [process.execPath, [script]];
}

test('a daemon of another protocol version is refused', async (t) => {
  const [command, args] = await impostor(
    t,
    `console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: 2 } }));`,
  );
  await assert.rejects(connect({ command, args }), {
    kind: 'versionMismatch',
    details: { expected: 1, spoken: 2 },
  });
});

test('a call is cancelled at its deadline', async (t) => {
  const [command, args] = await impostor(
    t,
    `if (method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: 1 } }));
     if (method === '$/cancel_request') console.error('cancelled');`,
  );
  let log = '';
  const client = await connect({ command, args, timeoutMs: 5000, onLog: (text) => (log += text) });
  t.after(() => client.close());
  const started = performance.now();
  await assert.rejects(client.getLeaf({}, { timeoutMs: 50 }), {
    kind: 'timeout',
    retryable: true,
    details: { timeoutMs: 50 },
  });
  assert(performance.now() - started < 4000);
  await client.close();
  assert.equal(log, 'cancelled\n');
});

test('a daemon that does not end is killed', async (t) => {
  const [command, args] = await impostor(
    t,
    `console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: 1 } }));
     setInterval(() => {}, 1000);`,
  );
  const client = await connect({ command, args });
  await client.close(100);
  assert.equal((await client.closed).details.signal, 'SIGTERM');
});
