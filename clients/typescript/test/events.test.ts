// Notifications, and answers to questions.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { EventResolved, SessionTree } from 'treelined';
import { conversation, start } from './fixture.js';

test('session_tree arrives before the response', async (t) => {
  const client = await start(t);
  await conversation(client);
  const moves: SessionTree[] = [];
  const stop = client.on('session_tree', (move) => moves.push(move));
  await client.setLeaf({ leafId: 'a1' });
  assert.deepEqual(
    moves.map(({ oldLeafId, newLeafId, cause }) => ({ oldLeafId, newLeafId, cause })),
    [{ oldLeafId: 'a2', newLeafId: 'a1', cause: 'set_leaf' }],
  );
  stop();
  await client.setLeaf({ leafId: 'a2' });
  assert.equal(moves.length, 1, 'nobody listens any more');
});

test('unwanted notifications are not sent', async (t) => {
  const client = await start(t, { optOut: ['entries_appended'] });
  client.on('entries_appended', () => assert.fail('opted out'));
  await conversation(client);
});

test('notifications that an answerer needs are sent despite optOut', async (t) => {
  const client = await start(t, {
    answers: ['session_before_tree'],
    optOut: ['session_before_tree', 'event_resolved', 'session_tree'],
  });
  await conversation(client);
  client.on('session_tree', () => assert.fail('opted out'));
  const dismissed = new Promise<void>((resolve) => {
    client.answer('session_before_tree', (_, signal) => {
      return new Promise((answer) => {
        signal.addEventListener('abort', () => {
          resolve();
          answer({});
        });
      });
    });
  });
  await client.navigateTree({ targetId: 'a1', answerTimeoutMs: 100 });
  await dismissed;
});

test('an answerer can cancel', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  client.answer('session_before_tree', async (event) => {
    return { cancel: event.preparation.targetId === 'a1' };
  });
  const vetoed = await client.navigateTree({ targetId: 'a1' });
  assert.equal(vetoed.cancelled, true);
  assert.equal(vetoed.reason, 'cancelledByClient');
  assert.equal((await client.getLeaf()).leafId, 'a2');
  const moved = await client.navigateTree({ targetId: 'u1' });
  assert.equal(moved.cancelled, false);
});

test('an answerer can summarize', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  client.answer('session_before_tree', ({ preparation }) => {
    assert.equal(preparation.userWantsSummary, true);
    const ids = preparation.entriesToSummarize?.map((entry) => entry.id);
    return { summary: { summary: `went through ${String(ids)}`, details: { by: 'a test' } } };
  });
  const moved = await client.navigateTree({ targetId: 'a1', summarize: true, label: 'left' });
  assert.equal(moved.fromHook, true);
  assert(moved.summaryEntry?.type === 'branch_summary');
  assert.equal(moved.summaryEntry.summary, 'went through u2,a2');
  assert.deepEqual(moved.summaryEntry.details, { by: 'a test' });
  assert.equal((await client.getLabel({ entryId: moved.summaryEntry.id })).label, 'left');
});

// A guard that threw an error once counted as having no opinion, so the move happened.
test('without an answerer or an opinion the navigation proceeds, and an error cancels it', async (t) => {
  const errors: unknown[] = [];
  const client = await start(t, {
    answers: ['session_before_tree'],
    onError: (error) => errors.push(error),
  });
  await conversation(client);
  assert.equal((await client.navigateTree({ targetId: 'a1' })).newLeafId, 'a1');
  client.answer('session_before_tree', () => undefined);
  assert.equal((await client.navigateTree({ targetId: 'a2' })).newLeafId, 'a2');
  const mistake = new Error('a mistake');
  client.answer('session_before_tree', () => {
    throw mistake;
  });
  const moved = await client.navigateTree({ targetId: 'a1' });
  assert(!('preparation' in moved));
  assert.deepEqual([moved.reason, moved.message], ['cancelledByClient', 'a mistake']);
  assert.deepEqual(errors, [mistake]);
});

test('an error lets the navigation proceed if the client says so', async (t) => {
  const client = await start(t, {
    answers: ['session_before_tree'],
    onFailure: 'proceed',
    onError: () => {},
  });
  await conversation(client);
  client.answer('session_before_tree', () => Promise.reject(new Error('a mistake')));
  assert.equal((await client.navigateTree({ targetId: 'a1' })).newLeafId, 'a1');
});

test('a veto says who and why', async (t) => {
  const client = await start(t, {
    clientInfo: { name: 'guard' },
    answers: ['session_before_tree'],
  });
  await conversation(client);
  client.answer('session_before_tree', () => ({ cancel: true, reason: 'é'.repeat(501) }));
  const moved = await client.navigateTree({ targetId: 'a1' });
  assert(!('preparation' in moved));
  assert.deepEqual([moved.by, moved.message], ['guard', 'é'.repeat(500)]);
});

// An answer with `cancel: true` and an unknown member was once refused, and the client then counted as having no
// opinion.
test('an invalid answer is reported and cancels', async (t) => {
  const errors: unknown[] = [];
  const client = await start(t, {
    answers: ['session_before_tree'],
    onError: (error) => errors.push(error),
  });
  await conversation(client);
  const answers = [{ cancle: true }, { cancel: true, because: 'building' }, { cancel: 1n }, true];
  for (const wrong of answers) {
    client.answer('session_before_tree', () => wrong as object);
    const moved = await client.navigateTree({ targetId: 'a1' }, { timeoutMs: 20_000 });
    assert.equal(moved.reason, 'cancelledByClient');
  }
  assert.match(String(errors[0]), /cancle/);
  assert.equal(errors.length, answers.length);
});

// Once, the event had to be named twice: for the daemon, and for the answerer.
test('answers of connect make the daemon wait', async (t) => {
  const client = await start(t, {
    answers: {
      session_before_tree: ({ preparation }) => ({ cancel: preparation.targetId === 'a1' }),
      session_before_fork: undefined,
    },
  });
  await conversation(client);
  assert.equal((await client.navigateTree({ targetId: 'a1' })).reason, 'cancelledByClient');
  client.answer('session_before_tree', () => undefined);
  assert.equal((await client.navigateTree({ targetId: 'a1' })).cancelled, false);
  assert.throws(() => client.answer('session_before_fork', () => ({})), /does not wait/);
});

test('the error for an undeclared answerer names the remedy', async (t) => {
  const client = await start(t);
  assert.throws(
    () => client.answer('session_before_tree', () => ({})),
    /connect\(\{ answers: \{ session_before_tree: answerer \} \}\)/,
  );
});

test('a question is over for its answerer after the timeout', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  const resolved: EventResolved[] = [];
  client.on('event_resolved', (event) => resolved.push(event));
  const dismissed = new Promise<void>((resolve) => {
    client.answer('session_before_tree', (_, signal) => {
      return new Promise((answer) => {
        signal.addEventListener('abort', () => {
          resolve();
          answer({ cancel: true });
        });
      });
    });
  });
  const moved = await client.navigateTree({
    targetId: 'a1',
    answerTimeoutMs: 100,
    onNoAnswer: 'cancel',
  });
  await dismissed;
  assert.equal(moved.reason, 'noAnswer');
  assert.deepEqual(
    resolved.map(({ outcome }) => outcome),
    ['timeout'],
  );
});

test('an answerer can ask for more time', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  client.answer('session_before_tree', async (_, signal, extend) => {
    assert((await extend(60_000)) > 50_000);
    // Longer than the timeout of the navigation, which is long enough for a busy machine.
    await new Promise((resolve) => setTimeout(resolve, 3300));
    assert.equal(signal.aborted, false);
    return { cancel: true };
  });
  const moved = await client.navigateTree({ targetId: 'a1', answerTimeoutMs: 3000 });
  assert.equal(moved.reason, 'cancelledByClient');
});

test('a waiting navigation is aborted by its signal', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  const abort = new AbortController();
  let isOver: AbortSignal | undefined;
  client.answer('session_before_tree', (_, signal) => {
    isOver = signal;
    abort.abort();
    return new Promise(() => {});
  });
  const moved = await client.navigateTree({ targetId: 'a1' }, { signal: abort.signal });
  assert.equal(moved.cancelled, true);
  assert.equal(moved.reason, 'aborted');
  assert.equal(isOver?.aborted, true);
  assert.equal((await client.getLeaf()).leafId, 'a2');
});

test('a waiting navigation is aborted by its id', async (t) => {
  const client = await start(t, { answers: ['session_before_tree'] });
  await conversation(client);
  const asked = new Promise<string>((resolve) => {
    client.answer('session_before_tree', ({ navigationId }) => {
      resolve(navigationId);
      return new Promise(() => {});
    });
  });
  const moving = client.navigateTree({ targetId: 'a1' });
  const { aborted } = await client.abortNavigation({ navigationId: await asked });
  assert.equal(aborted, true);
  assert.equal((await moving).reason, 'aborted');
});

test('a waiting fork fails with the reason of its signal', async (t) => {
  const client = await start(t, { answers: ['session_before_fork'] });
  await conversation(client);
  const abort = new AbortController();
  const reason = new Error('enough');
  client.answer('session_before_fork', () => {
    abort.abort(reason);
    return new Promise(() => {});
  });
  await assert.rejects(client.forkSession({}, { signal: abort.signal }), reason);
});

test('a call with an aborted signal is not sent', async (t) => {
  const client = await start(t);
  await conversation(client);
  const call = client.setLeaf({ leafId: 'a1' }, { signal: AbortSignal.abort() });
  await assert.rejects(call, { name: 'AbortError' });
  assert.equal((await client.getLeaf()).leafId, 'a2');
});

test('an abort that comes too late leaves the usual result', async (t) => {
  const client = await start(t);
  await conversation(client);
  const abort = new AbortController();
  const call = client.setLeaf({ leafId: 'a1' }, { signal: abort.signal });
  abort.abort();
  assert.equal((await call).newLeafId, 'a1');
});
