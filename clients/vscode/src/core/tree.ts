// The tree of a session as nested items. The path to the leaf is one flat list, however long it is; below each of
// its entries are the branches that were left there. The daemon decides what is shown and in which order: with
// `order: "active-first"` a row and its first child are neighbours, so that a branch is a run of such rows.

import type { GetTreeResult, SearchMode, TreeFilter, TreeNode } from 'treelined';
import type { Session } from './session.js';

/** An element of the tree view. */
export type Item =
  /** An entry. A `branch` begins with it; the rest of the branch is below it. */
  | {
      kind: 'entry' | 'branch';
      id: string;
      row: TreeNode;
      parent: Item | undefined;
      hasChildren: boolean;
    }
  /** Rows that are not loaded; `load` shows more of them. */
  | { kind: 'more'; id: string; text: string; parent: Item | undefined; load: () => void };

export type EntryItem = Exclude<Item, { kind: 'more' }>;

/** Which rows are shown. */
export interface View {
  filter: TreeFilter;
  /** Words, or a regular expression between slashes; empty shows all rows. */
  query: string;
  /** Rows that are fetched at once. */
  pageSize: number;
}

/** A page is at most this large, so that no message takes long to read. */
const MAX_PAGE_BYTES = 1 << 20;

/** Returns params of `query` and `mode`: text between slashes is a regular expression. */
export function queryParams(typed: string): { query?: string; mode?: SearchMode } {
  const text = typed.trim();
  if (text === '') return {};
  const pattern = /^\/(.*?)\/?$/s.exec(text)?.[1];
  return pattern ? { query: pattern, mode: 'regex' } : { query: text };
}

export class Tree {
  readonly session: Session;
  view: View;
  /** The last answer about the whole tree. */
  state: Pick<GetTreeResult, 'total' | 'hidden' | 'leafId'> = { total: 0, hidden: 0, leafId: null };
  /** The row of the leaf, or of the nearest visible entry above it. */
  leafRow: TreeNode | undefined;
  /** The first row of the path that is shown; undefined: a page up to the leaf. */
  #from: number | undefined;
  /** The end of an upper part of the path, behind which rows are left out; undefined: there is no gap. */
  #to: number | undefined;
  /** Rows that are shown of long branches and lists, by the id of their item. */
  readonly #lengths = new Map<string, number>();
  /** The items of the last reading by the ids of their entries. */
  #items = new Map<string, EntryItem>();
  /** Called when more rows are to be shown. */
  onMore: (item: Item | undefined) => void = () => {};

  constructor(session: Session, view: View) {
    this.session = session;
    this.view = view;
  }

  /** The item of an entry, if it has been read. */
  item(entryId: string): EntryItem | undefined {
    return this.#items.get(entryId);
  }

  /** Returns the items below `parent`; undefined: the top. */
  async children(parent?: Item): Promise<Item[]> {
    if (parent === undefined)
      return queryParams(this.view.query).query ? this.#matches() : this.#top();
    if (parent.kind === 'more') return [];
    if (parent.kind === 'branch') return this.#rest(parent);
    return this.#branches(parent);
  }

  /** Shows another part of the rows, from the beginning. */
  setView(view: Partial<View>): void {
    this.view = { ...this.view, ...view };
    this.#from = undefined;
    this.#to = undefined;
    this.#lengths.clear();
  }

  /** Reads the row of the leaf. */
  async position(): Promise<TreeNode | undefined> {
    const { leafId } = this.session;
    const page = leafId === null ? undefined : await this.#around(leafId);
    this.leafRow = page?.rows.find((row) => row.onActivePath);
    return this.leafRow;
  }

  /** Reads what leads to an entry, and returns its item: the one of the nearest visible entry at or above it. */
  async locate(entryId: string): Promise<EntryItem | undefined> {
    const { rows, offset } = await this.#around(entryId);
    const row = rows[0];
    if (row === undefined) return undefined;
    const heads = row.onActivePath ? [] : await this.#climb(row, offset);
    const top = heads.at(-1)?.parentId ?? row.id;
    if (heads.at(-1)?.parentId !== null) await this.#showOnPath(top);
    await this.children();
    for (const head of heads.reverse()) {
      const at = head.parentId === null ? undefined : this.#items.get(head.parentId);
      if (at) await this.children(at);
      const item = this.#items.get(head.id);
      if (item) {
        this.#lengths.set(
          item.id,
          Math.max(this.#length(item.id), head.length + this.view.pageSize),
        );
        await this.children(item);
      }
    }
    return this.#items.get(row.id);
  }

  #read(params: Parameters<Session['call']>[1] & object): Promise<GetTreeResult> {
    return this.session.call('get_tree', {
      filter: this.view.filter,
      order: 'active-first',
      maxBytes: MAX_PAGE_BYTES,
      ...params,
    });
  }

  #length(id: string): number {
    return this.#lengths.get(id) ?? this.view.pageSize;
  }

  #more(id: string, text: string, parent: Item | undefined, rows = this.#length(id)): Item {
    const load = () => {
      this.#lengths.set(id, rows + 4 * this.view.pageSize);
      this.onMore(parent);
    };
    return { kind: 'more', id: `more ${id}`, text, parent, load };
  }

  #entry(
    kind: EntryItem['kind'],
    row: TreeNode,
    parent: Item | undefined,
    hasChildren: boolean,
  ): EntryItem {
    const item = { kind, id: `entry ${row.id}`, row, parent, hasChildren };
    this.#items.set(row.id, item);
    return item;
  }

  /** The path to the leaf, and branches from the beginning. */
  async #top(): Promise<Item[]> {
    this.#items = new Map();
    const { leafId, pageSize } = { leafId: this.session.leafId, pageSize: this.view.pageSize };
    const page = await this.#read({ limit: pageSize, ...(leafId !== null && { around: leafId }) });
    this.state = page;
    const path = (page.nodes as TreeNode[]).filter((row) => row.onActivePath);
    this.leafRow = path.at(-1);
    if (path.length === 0) return this.#roots(page.rootIds.length);
    const from = Math.min(this.#from ?? page.offset, page.offset);
    const to = Math.max(from, Math.min(this.#to ?? page.offset, page.offset));
    // Without a gap there is none when the conversation grows either.
    if (to === page.offset) this.#to = undefined;
    const rows = await this.#rowsBetween(from, to);
    const items: Item[] = [];
    const row = (each: TreeNode) =>
      items.push(this.#entry('entry', each, undefined, each.childCount > (each.isLeaf ? 0 : 1)));
    const gap = (id: string, text: string, load: () => void) =>
      items.push({
        ...{ kind: 'more', id, text, parent: undefined },
        load: () => {
          load();
          this.onMore(undefined);
        },
      });
    if (from > 0)
      gap('above', `${from} earlier`, () => (this.#from = Math.max(0, from - 4 * pageSize)));
    rows.forEach(row);
    if (to < page.offset)
      gap('between', `${page.offset - to} between`, () => (this.#to = to + 4 * pageSize));
    path.forEach(row);
    if (page.rootIds.length > 1) items.push(...(await this.#roots(page.rootIds.length)));
    return items;
  }

  /** Rows of the path by their numbers, `to` exclusive. */
  async #rowsBetween(from: number, to: number): Promise<TreeNode[]> {
    const rows: TreeNode[] = [];
    while (from + rows.length < to) {
      const offset = from + rows.length;
      const page = await this.#read({ offset, limit: to - offset });
      if (page.nodes.length === 0) break;
      rows.push(...(page.nodes as TreeNode[]));
    }
    return rows;
  }

  /** First entries that are not on the path. */
  async #roots(count: number): Promise<Item[]> {
    const page = await this.#read({ maxDepth: 0, limit: this.#length('roots') });
    const items: Item[] = (page.nodes as TreeNode[])
      .filter((row) => !row.onActivePath)
      .map((row) => this.#entry('branch', row, undefined, row.childCount > 0));
    const left = count - page.nodes.length;
    if (left > 0) items.push(this.#more('roots', `${left} other beginnings`, undefined));
    return items;
  }

  /** All rows that the query finds, as a list. */
  async #matches(): Promise<Item[]> {
    this.#items = new Map();
    const params = {
      ...queryParams(this.view.query),
      order: 'time',
      limit: this.#length('matches'),
    };
    const page = await this.#read(params);
    this.state = page;
    const rows = page.nodes as TreeNode[];
    const items: Item[] = rows.map((row) => this.#entry('entry', row, undefined, false));
    const left = page.total - rows.length;
    if (left > 0) items.push(this.#more('matches', `${left} more`, undefined, rows.length));
    return items;
  }

  /** The other entries that follow `parent`: each begins a branch. */
  async #branches(parent: EntryItem): Promise<Item[]> {
    const limit = this.#length(parent.id);
    const page = await this.#read({ rootId: parent.row.id, maxDepth: 1, limit: limit + 1 });
    const children = (page.nodes as TreeNode[]).slice(1);
    // The first child goes on in the list that the parent is in, unless the leaf is the end of that list.
    const others = parent.row.isLeaf ? children : children.slice(1);
    const items: Item[] = others.map((row) =>
      this.#entry('branch', row, parent, row.childCount > 0),
    );
    const left = page.total - page.nodes.length;
    if (left > 0) items.push(this.#more(parent.id, `${left} more branches`, parent));
    return items;
  }

  /** The rest of a branch; before it, what else follows its first entry. */
  async #rest(head: EntryItem): Promise<Item[]> {
    const wanted = this.#length(head.id);
    const run: TreeNode[] = [];
    let isWhole = false;
    while (run.length < wanted && !isWhole) {
      const page = await this.#read({
        rootId: head.row.id,
        offset: run.length,
        limit: Math.min(wanted - run.length, 1000),
      });
      const before = run.length;
      for (const row of page.nodes as TreeNode[]) {
        isWhole = run.length > 0 && row.parentId !== run.at(-1)?.id;
        if (isWhole) break;
        run.push(row);
      }
      isWhole ||= run.length === before || page.nextCursor === undefined;
    }
    const first = run[0];
    const others =
      first && first.childCount > 1 ? await this.#branches({ ...head, row: first }) : [];
    const items: Item[] = others.map((item) => ({ ...item, parent: head }));
    for (const row of run.slice(1)) {
      items.push(this.#entry('entry', row, head, row.childCount > 1));
    }
    if (!isWhole) items.push(this.#more(head.id, 'more of this branch', head));
    return items;
  }

  async #around(entryId: string): Promise<{ rows: TreeNode[]; offset: number }> {
    const page = await this.#read({ around: entryId, limit: 1 });
    return { rows: page.nodes as TreeNode[], offset: page.offset };
  }

  /**
   * Returns the heads of the branches that contain a row, the innermost first, with the number of rows from each
   * head to the row or to the next branch.
   */
  async #climb(
    row: TreeNode,
    offset: number,
  ): Promise<{ id: string; parentId: string | null; length: number }[]> {
    const heads: { id: string; parentId: string | null; length: number }[] = [];
    let [current, at] = [row, offset];
    let length = 1;
    for (;;) {
      const from = Math.max(0, at - this.view.pageSize);
      const above = at === 0 ? [] : await this.#rowsBetween(from, at);
      let next = above.pop();
      while (next?.id === current.parentId && !next.onActivePath) {
        [current, at, length] = [next, at - 1, length + 1];
        next = above.pop();
      }
      // The page is used up in the middle of the branch.
      if (next === undefined && at > 0) continue;
      heads.push({ id: current.id, parentId: current.parentId, length });
      if (current.parentId === null) return heads;
      const parent = await this.#around(current.parentId);
      if (parent.rows[0] === undefined || parent.rows[0].onActivePath) return heads;
      [current, at, length] = [parent.rows[0], parent.offset, 1];
    }
  }

  /** Makes the list of the path contain one of its entries, with a gap behind it if it is far above. */
  async #showOnPath(entryId: string): Promise<void> {
    const { offset } = await this.#around(entryId);
    const isShown =
      this.#from !== undefined && this.#from <= offset && offset < (this.#to ?? Infinity);
    if (isShown) return;
    this.#from = Math.max(0, offset - 10);
    this.#to = offset + this.view.pageSize;
  }
}
