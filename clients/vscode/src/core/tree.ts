// The tree of a session as nested items. The daemon folds the branches that were left (protocol.md §6.8): the path to the
// leaf is one flat list, however long it is, and a row of the list stands for the branches that were left at its fork.
// Its items are these branches; below a branch are its rows, among which others are folded again.

import type { GetTreeResult, SearchMode, TreeFilter, TreeNode } from 'treelined';
import type { Session } from './session.js';
import { count } from './text.js';

/** An element of the tree view. */
export type Item =
  /** An entry; a `branch` begins with it, and the rest of the branch is below it; `branches` are below their row. */
  | {
      kind: 'entry' | 'branch' | 'branches';
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
  /** Whether archived branches are shown. */
  archived?: boolean;
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

/** Says how many branches are archived. */
export function archivedText(number: number): string {
  return count(number, 'archived branch', 'archived branches');
}

export class Tree {
  readonly session: Session;
  view: View;
  /** The last answer about the whole tree. */
  state: Pick<GetTreeResult, 'total' | 'hidden' | 'leafId' | 'archivedBranches'> = {
    total: 0,
    hidden: 0,
    leafId: null,
  };
  /** The row of the leaf, or of the nearest visible entry above it. */
  leafRow: TreeNode | undefined;
  /** The first row of the path that is shown; undefined: a page up to the leaf. */
  #from: number | undefined;
  /** The end of an upper part of the path, behind which rows are left out; undefined: there is no gap. */
  #to: number | undefined;
  /** Rows that are shown of long branches and lists, by the id of their item. */
  readonly #lengths = new Map<string, number>();
  /** Whether rows name the sessions that come from them. The first rows do not: the daemon reads its list for that. */
  #namesSessions = false;
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
    if (parent.kind === 'branches') return this.#branches(parent);
    return parent.kind === 'branch' ? this.#rest(parent) : [];
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
    this.leafRow = page?.row?.onActivePath ? page.row : undefined;
    return this.leafRow;
  }

  /** Reads what leads to an entry, and returns its item: the one of the nearest visible entry at or above it. */
  async locate(entryId: string): Promise<EntryItem | undefined> {
    let { row, offset } = await this.#around(entryId);
    if (row === undefined) return undefined;
    this.#showOnPath(offset);
    let items = await this.children();
    for (;;) {
      const item: Item | undefined = items.find(
        (each) => each.kind !== 'more' && each.row.id === row?.id,
      );
      if (item === undefined || item.kind === 'more') return undefined;
      if (row?.folded === undefined || row.id === entryId) return item;
      if (item.kind === 'branches') {
        const found = await this.#around(entryId, { each: [row.id], ...this.#scope(item) });
        this.#lengthen(item, found.offset - offset + 1);
        ({ row, offset } = found);
      } else {
        const found = await this.#around(entryId, { rootId: row.id });
        // The entry is the one with which the branch begins, or nothing of the branch above it is visible.
        if (found.offset === 0) return item;
        this.#lengthen(item, found.offset);
        ({ row, offset } = found);
      }
      items = await this.children(item);
    }
  }

  /** Shows at least so many rows of an item. */
  #lengthen(item: EntryItem, rows: number): void {
    if (rows > this.#length(item.id)) this.#lengths.set(item.id, rows + this.view.pageSize);
  }

  #read(params: Parameters<Session['call']>[1] & object): Promise<GetTreeResult> {
    const { othersLeafId } = this.session;
    return this.session.call('get_tree', {
      filter: this.view.filter,
      fold: 'left',
      ...(this.view.archived ? { archived: true } : {}),
      ...(this.#namesSessions ? { sessions: true } : {}),
      // Where other programs go on is open.
      ...(othersLeafId ? { expand: [othersLeafId] } : {}),
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

  #item(row: TreeNode, parent: Item | undefined): EntryItem {
    const several = (row.folded?.branches ?? 0) > 1;
    const kind = several ? 'branches' : row.folded ? 'branch' : 'entry';
    const id = several ? `branches ${row.id}` : `entry ${row.id}`;
    // A branch of one entry is this entry.
    const hasChildren = several || (row.folded?.entries ?? 0) > 1;
    const item: EntryItem = { kind, id, row, parent, hasChildren };
    if (!several) this.#items.set(row.id, item);
    return item;
  }

  /** The path to the leaf, with a row for the branches that were left at each fork. */
  async #top(): Promise<Item[]> {
    this.#items = new Map();
    const { leafId, pageSize } = { leafId: this.session.leafId, pageSize: this.view.pageSize };
    const page = await this.#read({ limit: pageSize, ...(leafId !== null && { around: leafId }) });
    this.state = page;
    const path = page.nodes as TreeNode[];
    this.leafRow = path.findLast((row) => row.onActivePath);
    const from = Math.min(this.#from ?? page.offset, page.offset);
    const to = Math.max(from, Math.min(this.#to ?? page.offset, page.offset));
    // Without a gap there is none when the conversation grows either.
    if (to === page.offset) this.#to = undefined;
    const rows = await this.#rowsBetween(from, to);
    const items: Item[] = [];
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
    items.push(...rows.map((row) => this.#item(row, undefined)));
    if (to < page.offset)
      gap('between', `${page.offset - to} between`, () => (this.#to = to + 4 * pageSize));
    items.push(...path.map((row) => this.#item(row, undefined)));
    if (page.archivedBranches !== undefined) {
      const { archived = false } = this.view;
      const text = `${archived ? 'Hide ' : ''}${archivedText(page.archivedBranches)}`;
      gap('archived', text, () => this.setView({ archived: !archived }));
    }
    if (!this.#namesSessions) {
      this.#namesSessions = true;
      setTimeout(() => this.onMore(undefined));
    }
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
    const items: Item[] = rows.map((row) => this.#item(row, undefined));
    const left = page.total - rows.length;
    if (left > 0) items.push(this.#more('matches', `${left} more`, undefined, rows.length));
    return items;
  }

  /** The branches that were left at a fork. They follow each other, since all of them are folded. */
  async #branches(parent: EntryItem): Promise<Item[]> {
    const { id, folded } = parent.row;
    const all = folded?.branches ?? 0;
    const wanted = Math.min(this.#length(parent.id), all);
    const each = { each: [id], ...this.#scope(parent) };
    const { offset } = await this.#around(id, each);
    const page = await this.#read({ ...each, offset, limit: wanted });
    const items: Item[] = (page.nodes as TreeNode[]).map((row) => this.#item(row, parent));
    if (wanted < all) items.push(this.#more(parent.id, `${all - wanted} more branches`, parent));
    return items;
  }

  /** The rows of a branch below its first entry. */
  async #rest(head: EntryItem): Promise<Item[]> {
    const wanted = this.#length(head.id);
    const rows: TreeNode[] = [];
    let isWhole = false;
    while (rows.length < wanted && !isWhole) {
      const page = await this.#read({
        rootId: head.row.id,
        offset: rows.length + 1,
        limit: Math.min(wanted - rows.length, 1000),
      });
      rows.push(...(page.nodes as TreeNode[]));
      isWhole = page.nodes.length === 0 || page.nextCursor === undefined;
    }
    const items: Item[] = rows.map((row) => this.#item(row, head));
    if (!isWhole) items.push(this.#more(head.id, 'more of this branch', head));
    return items;
  }

  /** The branch that an item is part of, as a param: rows of an open branch begin with its first entry. */
  #scope(item: Item): { rootId?: string } {
    const { parent } = item;
    if (parent?.kind === 'branch') return { rootId: parent.row.id };
    return {};
  }

  async #around(
    entryId: string,
    params: object = {},
  ): Promise<{ row: TreeNode | undefined; offset: number }> {
    const page = await this.#read({ ...params, around: entryId, limit: 1 });
    return { row: (page.nodes as TreeNode[])[0], offset: page.offset };
  }

  /** Makes the list of the path contain one of its rows, with a gap behind it if it is far above. */
  #showOnPath(offset: number): void {
    const isShown =
      this.#from !== undefined && this.#from <= offset && offset < (this.#to ?? Infinity);
    if (isShown) return;
    this.#from = Math.max(0, offset - 10);
    this.#to = offset + this.view.pageSize;
  }
}
