import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  completed,
  faultOf,
  faultParts,
  TextSearch,
  withWord,
} from '../../src/model/text-search.ts';
import { RpcError } from '../../src/source/rpc.ts';
import type { LiveState } from '../../src/model/live-state.ts';

test('an item takes the place of the word before the cursor, in code points', () => {
  const { text, cursor } = completed('🎉 ro cache', { start: 2, end: 4, items: [] }, 'role:');
  assert.equal(text, '🎉 role: cache');
  assert.equal(text.slice(0, cursor), '🎉 role:');
});

test('the word with the fault is found by its place', () => {
  const parts = (text: string, position: number) => faultParts(text, { reason: '', position });
  assert.deepEqual(parts(' 🎉 rol:user x', 2), ['🎉 ', 'rol:user', ' x']);
  assert.deepEqual(parts('a "b', 4), ['a "', 'b', '']);
  assert.equal(faultParts('a', { reason: '' }), undefined);
});

test('only a fault in the query is shown at the query', () => {
  const details = { field: 'query', reason: 'character 1: no', position: 0 };
  const error = (field: string) => new RpcError('invalidParams', 'no', { ...details, field });
  assert.deepEqual(faultOf(error('query')), { reason: 'character 1: no', position: 0 });
  assert.equal(faultOf(error('limit')), undefined);
  assert.equal(faultOf(new RpcError('storageIo', 'no', {})), undefined);
});

test('a known word takes the place of an unknown one, whatever its case', () => {
  assert.equal(withWord('why Biuld (x', 'biuld', '$1'), 'why $1 (x');
});

interface Call {
  method: string;
  params: Record<string, unknown>;
}

// An entry once had to contain every word of a question, so a question found nothing.
test('a question is asked, and one step finds exactly', async () => {
  const calls: Call[] = [];
  const link = {
    call(method: string, params: Record<string, unknown>): Promise<unknown> {
      calls.push({ method, params });
      const hit = { sessionId: 's', entryId: 'e', branch: { onActivePath: true } };
      return Promise.resolve(
        method === 'search'
          ? { hits: [hit, hit], more: [{ sessionId: 's', count: 7 }] }
          : { start: 0, end: 2, items: [{ text: 'role:' }] },
      );
    },
  };
  const app = { changed: (): void => undefined, failed: (): void => undefined };
  const search = new TextSearch({ link, app } as unknown as LiveState);
  const arrived = async (): Promise<void> => {
    while (search.running) await new Promise((done) => setTimeout(done, 5));
  };
  search.search('ro why', 2);
  await arrived();
  assert.deepEqual(
    calls.map(({ method }) => method),
    ['search', 'complete_query'],
  );
  const { mode, syntax } = calls[0]?.params ?? {};
  assert.deepEqual([mode, syntax], ['ask', 'filters']);
  assert.deepEqual([search.moreAfter(0), search.moreAfter(1)], [0, 7]);
  search.searchWithin({ sessionId: 's', name: 'A tour' });
  search.setMode('literal');
  await arrived();
  const last = calls.at(-1)?.params ?? {};
  assert.deepEqual([last.mode, last.syntax, last.sessionId], ['literal', undefined, 's']);
  search.nextMode();
  search.nextMode();
  assert.equal(search.mode, 'ask');
});
