import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LiveState } from '../../src/model/live-state.ts';
import { Presence } from '../../src/model/presence.ts';
import { SessionList } from '../../src/model/session-list.ts';

const HERE = { sessionId: 'here', cwd: '/c', modified: '', messageCount: 1, firstMessage: 'x' };

test('sessions of other machines follow those of this one, and open by their ids', async () => {
  const opened: unknown[] = [];
  const live = {
    call: (method: string) =>
      Promise.resolve(
        method === 'list_sessions'
          ? { sessions: [HERE], team: [{ sessionId: 'there', host: 'build-7', openOn: [] }] }
          : {},
      ),
    openSession: (which: unknown) => Promise.resolve(opened.push(which)),
    app: { changed: () => undefined, failed: (error: unknown) => assert.fail(String(error)) },
  };
  const list = new SessionList(live as unknown as LiveState);
  await list.load();
  assert.equal(list.count, 2);
  globalThis.history = { replaceState: () => undefined } as unknown as History;
  globalThis.location = { pathname: '/' } as unknown as Location;
  list.accept(list.lines[1]);
  await Promise.resolve();
  assert.deepEqual(opened, [{ session: 'there' }]);
});

test('the machines that have the session open are known by their names, each once', async () => {
  const openOn = [{ host: 'laptop' }, { host: 'build-7' }, { host: 'laptop' }];
  const rows = [
    { ...HERE, sessionId: 'here-2', log: { openOn: [] } },
    { ...HERE, log: { openOn } },
  ];
  for (const teamCount of [0, undefined]) {
    await new Promise<void>((resolve) => {
      const answer = Promise.resolve({
        sessions: rows,
        ...(teamCount === undefined ? {} : { teamCount }),
      });
      const presence = new Presence(
        () => answer,
        () => {
          assert.deepEqual(presence.hosts, ['laptop', 'build-7']);
          assert.equal(teamCount, 0);
          setTimeout(() => {
            presence.stop();
            resolve();
          });
        },
      );
      presence.watch('here');
      // A daemon without a team returns no hosts.
      if (teamCount === undefined)
        setTimeout(() => {
          assert.deepEqual(presence.hosts, []);
          resolve();
        });
    });
  }
});
