// The tree of a session as nested items. The daemon folds the branches that were left (protocol.md §6.8). So the path
// to the leaf is one flat list, however long it is, and a row of this list stands for the branches that were left at
// a fork. The items of this row are these branches. Below a branch are its rows, in which further branches are
// folded.

import type { GetTreeResult, SearchMode, TreeFilter, TreeNode } from 'treelined';
import type { Session } from './session.js';
import { count } from './text.js';

/** An element of the tree view. */
export type Item =
  /**
   * An entry. A `branch` item is the first entry of a branch, with the rest of the branch below it. A `branches` item
   * has the branches of a fork below it.
   */
  | {
      kind: 'entry' | 'branch' | 'branches';
      id: string;
      row: TreeNode;
      parent: Item | undefined;
      hasChildren: boolean;
    }
  /** Stands for rows that are not loaded. `load` shows more of them. */
  | { kind: 'more'; id: string; text: string; parent: Item | undefined; load: () => void };

export type EntryItem = Exclude<Item, { kind: 'more' }>;

/** Which rows are shown. */
export interface View {
  filter: TreeFilter;
  /** Words, or a regular expression between slashes. An empty query shows all rows. */
  query: string;
  /** The number of rows in one request. */
  pageSize: number;
  /** Whether archived branches are shown. */
  archived?: boolean;
}

/** The most bytes of a page, so that no message takes long to read. */
const MAX_PAGE_BYTES = 1 << 20;

/** Returns the params `query` and `mode`. A text between slashes is a regular expression. */
export function queryParams(typed: string): { query?: string; mode?: SearchMode } {
  const text = typed.trim();
  if (text === '') return {};
  const pattern = /^\/(.*?)\/?$/s.exec(text)?.[1];
  return pattern ? { query: pattern, mode: 'regex' } : { query: text };
}

/** Returns a text with the number of archived branches. */
export function archivedText(number: number): string {
  return count(number, 'archived branch', 'archived branches');
}

export class Tree {
  readonly session: Session;
  view: View;
  /** The last result about the whole tree. */
  state: Pick<GetTreeResult, 'total' | 'hidden' | 'leafId' | 'archivedBranches'> = {
    total: 0,
    hidden: 0,
    leafId: null,
  };
  /** The row of the leaf, or of its nearest visible ancestor. */
  leafRow: TreeNode | undefined;
  /** The number of the first row of the path that is shown. Undefined: one page that ends at the leaf. */
  #from: number | undefined;
  /**
   * The number of the row at which an upper part of the path ends. The rows after it are left out. Undefined: no rows
   * are left out.
   */
  #to: number | undefined;
  /** The number of rows that are shown of a long branch or list, by the id of its item. */
  readonly #lengths = new Map<string, number>();
  /**
   * Whether rows name the sessions that come from them. At first they do not, since the daemon must read its list of
   * sessions for this.
   */
  #namesSessions = false;
  /** The items of the last reading, by the ids of their entries. */
  #items = new Map<string, EntryItem>();
  /** Called when more rows must be shown. */
  onMore: (item: Item | undefined) => void = () => {};

  constructor(session: Session, view: View) {
    this.session = session;
    this.view = view;
  }

  /** The item of an entry, if it was read. */
  item(entryId: string): EntryItem | undefined {
    return this.#items.get(entryId);
  }

  /** Returns the items below `parent`. Undefined: the items at the top. */
  async children(parent?: Item): Promise<Item[]> {
    if (parent === undefined)
      return queryParams(this.view.query).query ? this.#matches() : this.#top();
    if (parent.kind === 'branches') return this.#branches(parent);
    return parent.kind === 'branch' ? this.#rest(parent) : [];
  }

  /** Selects other rows, and shows them from the beginning. */
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

  /** Reads the rows that lead to an entry. Returns the item of the entry, or of its nearest visible ancestor. */
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
        // The entry is the first one of the branch, or no entry of the branch above it is visible.
        if (found.offset === 0) return item;
        this.#lengthen(item, found.offset);
        ({ row, offset } = found);
      }
      items = await this.children(item);
    }
  }

  /** Shows at least `rows` rows of an item. */
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
      // The branch in which other programs continue is open.
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
    // A branch of one entry has nothing below this entry.
    const hasChildren = several || (row.folded?.entries ?? 0) > 1;
    const item: EntryItem = { kind, id, row, parent, hasChildren };
    if (!several) this.#items.set(row.id, item);
    return item;
  }

  /** The rows of the path to the leaf, and for each fork a row with the branches that were left there. */
  async #top(): Promise<Item[]> {
    this.#items = new Map();
    const { leafId, pageSize } = { leafId: this.session.leafId, pageSize: this.view.pageSize };
    const page = await this.#read({ limit: pageSize, ...(leafId !== null && { around: leafId }) });
    this.state = page;
    const path = page.nodes as TreeNode[];
    this.leafRow = path.findLast((row) => row.onActivePath);
    const from = Math.min(this.#from ?? page.offset, page.offset);
    const to = Math.max(from, Math.min(this.#to ?? page.offset, page.offset));
    // If no rows are left out now, none are left out after the conversation has grown.
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
    const { shedBranches } = page;
    if (shedBranches !== undefined) {
      const back = `treelined unshed brings ${shedBranches === 1 ? 'it' : 'them'} back`;
      const text = `${count(shedBranches, 'shed branch', 'shed branches')} · ${back}`;
      // A click reads the tree again, since another program brings them back.
      gap('shed', text, () => undefined);
    }
    if (!this.#namesSessions) {
      this.#namesSessions = true;
      setTimeout(() => this.onMore(undefined));
    }
    return items;
  }

  /** The rows of the path from the number `from` to `to`, exclusive. */
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

  /** All rows that the query finds, as one list. */
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

  /** The branches that were left at a fork. All of them are folded, so their rows follow each other. */
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

  /** The rows of a branch after its first entry. */
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

  /**
   * The params that limit a request to the branch of an item. In an open branch its rows begin with its first entry.
   */
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

  /** Extends the shown rows of the path to a row. If the row is far above, the rows after it are left out. */
  #showOnPath(offset: number): void {
    const isShown =
      this.#from !== undefined && this.#from <= offset && offset < (this.#to ?? Infinity);
    if (isShown) return;
    this.#from = Math.max(0, offset - 10);
    this.#to = offset + this.view.pageSize;
  }
}
