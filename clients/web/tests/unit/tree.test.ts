import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tree } from '../../src/model/tree.ts';
import type { Row } from '../../src/wire.ts';
import type { Source, TreeView, ViewQuery } from '../../src/source/source.ts';

/** A source whose views arrive when the test says so. */
class SlowSource {
  private readonly waiting: (() => void)[] = [];

  constructor(readonly ids: string[]) {}

  async view(query: ViewQuery): Promise<TreeView> {
    await new Promise<void>((done) => this.waiting.push(done));
    const { ids } = this;
    return {
      query,
      total: ids.length,
      hidden: 0,
      row: (at) => {
        const id = ids[at];
        return id === undefined ? undefined : ({ id } as Row);
      },
      want: () => undefined,
      indexOf: (id) => Promise.resolve(ids.indexOf(id)),
      overview: () => undefined,
    };
  }

  /** Lets all views arrive that have been asked for. */
  async arrive(): Promise<void> {
    for (const done of this.waiting.splice(0)) done();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
}

async function opened(): Promise<{ source: SlowSource; tree: Tree }> {
  const source = new SlowSource(['a', 'b', 'c', 'd']);
  const nothing = (): void => undefined;
  const tree = new Tree(source as unknown as Source, nothing, nothing, (error) => {
    throw error;
  });
  const loaded = tree.reload('center', 'b');
  await source.arrive();
  await loaded;
  return { source, tree };
}

/** News of others read the rows again while the tree went to the leaf, which then was never shown. */
test('a reload does not end a move that has begun', async () => {
  const { source, tree } = await opened();
  const gone = tree.go('d');
  const reloaded = tree.reload('keep', 'b');
  await source.arrive();
  assert.equal(await gone, true);
  await reloaded;
  assert.equal(tree.cursorId, 'd');
});

/** The answer to an older request took the cursor back. */
test('the cursor stays where the reader moves it while rows are read', async () => {
  const { source, tree } = await opened();
  const reloaded = tree.reload('keep', 'd');
  tree.move(0);
  source.ids.unshift('new');
  await source.arrive();
  await reloaded;
  assert.deepEqual([tree.cursorId, tree.cursor], ['a', 1]);
});
