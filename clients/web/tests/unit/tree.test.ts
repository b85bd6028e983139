import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tree } from '../../src/model/tree.ts';
import type { Row } from '../../src/wire.ts';
import type { Source, TreeView, ViewQuery } from '../../src/source/source.ts';

/** A source whose views arrive when the test calls `arrive`. */
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

  /** Lets all requested views arrive. */
  async arrive(): Promise<void> {
    for (const done of this.waiting.splice(0)) done();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
}

async function opened(): Promise<{ source: SlowSource; tree: Tree; shown: string[] }> {
  const source = new SlowSource(['a', 'b', 'c', 'd']);
  const shown: string[] = [];
  const nothing = (): void => undefined;
  const show = (id: string): void => void shown.push(id);
  const tree = new Tree(source as unknown as Source, nothing, show, (error) => {
    throw error;
  });
  const loaded = tree.reload('center', 'b');
  await source.arrive();
  await loaded;
  return { source, tree, shown };
}

/** In a file, the leaf is selected and the text begins at its start. A click on the leaf once did nothing. */
test('a click on the selected row shows its text again', async () => {
  const { tree, shown } = await opened();
  const row = tree.row();
  assert.ok(row);
  assert.deepEqual(shown, ['b']);
  await tree.pick(row, tree.cursor);
  assert.deepEqual(shown, ['b', 'b']);
});

/** Once, changes of other clients caused a reload while the tree moved to the leaf, and the leaf was never shown. */
test('a reload does not end a move that has begun', async () => {
  const { source, tree } = await opened();
  const gone = tree.go('d');
  const reloaded = tree.reload('keep', 'b');
  await source.arrive();
  assert.equal(await gone, true);
  await reloaded;
  assert.equal(tree.cursorId, 'd');
});

/** The answer to an older request once moved the cursor back. */
test('the cursor stays where the reader moves it while rows are read', async () => {
  const { source, tree } = await opened();
  const reloaded = tree.reload('keep', 'd');
  tree.move(0);
  source.ids.unshift('new');
  await source.arrive();
  await reloaded;
  assert.deepEqual([tree.cursorId, tree.cursor], ['a', 1]);
});

/** Once, a click on a row moved the cursor to the row that another client had meanwhile put there. */
test('a click reaches the entry of its row after the rows have changed', async () => {
  const { source, tree } = await opened();
  const [c, d] = [tree.view?.row(2), tree.view?.row(3)];
  assert.ok(c && d);
  source.ids.unshift('new');
  const reloaded = tree.reload('keep');
  await source.arrive();
  await reloaded;
  assert.deepEqual([tree.cursorId, tree.cursor], ['b', 2]);
  const picked = tree.pick(c, 2);
  await source.arrive();
  await picked;
  assert.deepEqual([tree.cursorId, tree.cursor], ['c', 3]);
  await tree.pick(d, 4);
  assert.deepEqual([tree.cursorId, tree.cursor], ['d', 4]);
});

/** Rows of which some are user messages. They are read when the test says so. */
function pages(total: number, prompts: number[]) {
  const loaded = new Set<number>();
  const wanted: [number, number][] = [];
  const view = {
    total,
    hidden: 0,
    row: (at: number) =>
      loaded.has(at)
        ? ({ id: `r${at}`, role: prompts.includes(at) ? 'user' : 'assistant' } as Row)
        : undefined,
    want: (from: number, to: number) => void wanted.push([from, to]),
    indexOf: (id: string) => Promise.resolve(Number(id.slice(1))),
    overview: () => undefined,
  };
  const source = { view: () => Promise.resolve(view) } as unknown as Source;
  const nothing = (): void => undefined;
  const tree = new Tree(source, nothing, nothing, (error) => {
    throw error;
  });
  const read = (from: number, to: number): void => {
    for (let at = from; at < to; at++) loaded.add(at);
    tree.follow();
  };
  return { tree, wanted, read };
}

/** The search for the next user message once ended at the last row that was read. */
test('a jump to a prompt reads the rows between', async () => {
  const { tree, wanted, read } = pages(1000, [0, 450, 700]);
  read(0, 200);
  await tree.reload('center', 'r10');
  let ended = 0;
  const none = (): void => {
    ended++;
  };
  tree.movePrompt(1, none);
  assert.equal(tree.cursor, 10);
  assert.deepEqual(wanted.at(-1), [200, 351]);
  read(200, 400);
  // The key is pressed twice, so the first message is passed.
  tree.movePrompt(1, none);
  read(400, 600);
  assert.equal(tree.isSeeking, true);
  read(600, 800);
  assert.deepEqual([tree.cursor, tree.isSeeking, ended], [700, false, 0]);
  tree.movePrompt(1, none);
  read(800, 1000);
  assert.deepEqual([tree.cursor, tree.isSeeking, ended], [700, false, 1]);
  tree.movePrompt(-1, none);
  assert.equal(tree.cursor, 450);
});

/** Once, a change by another client moved the cursor back to the last row that had been read. */
test('the cursor stays on a row that is not read yet while the rows change', async () => {
  const { tree, read } = pages(1000, []);
  read(0, 200);
  await tree.reload('center', 'r10');
  tree.move(500);
  assert.deepEqual([tree.cursorId, tree.isBetween], ['r10', true]);
  await tree.reload('keep');
  assert.equal(tree.cursor, 500);
  read(450, 550);
  assert.deepEqual([tree.cursorId, tree.isBetween], ['r500', false]);
  tree.move(700);
  await tree.reload('center', 'r500');
  assert.equal(tree.cursor, 500);
});

test('a reader who moves ends the jump to a prompt', async () => {
  const { tree, read } = pages(1000, [900]);
  read(0, 200);
  await tree.reload('center', 'r10');
  tree.movePrompt(1, () => undefined);
  tree.move(20);
  read(200, 1000);
  assert.deepEqual([tree.cursor, tree.isSeeking], [20, false]);
});
