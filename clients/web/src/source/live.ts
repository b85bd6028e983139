/** A session that a daemon has open. */

import type { Comparison, Row, Stats, Usage, UsageBy } from '../wire.ts';
import type { CallOptions, Link } from './rpc.ts';
import { LiveTree, Overviews, selection, type TreePage } from './live-tree.ts';
import type {
  BranchRow,
  Observer,
  Path,
  Rendered,
  SessionInfo,
  Source,
  TreeView,
  ViewQuery,
} from './source.ts';

export interface WireSession {
  sessionId: string;
  path?: string;
  name?: string | undefined;
  firstMessage: string;
  cwd?: string;
  created?: string;
  leafId: string | null;
  entryCount: number;
  readOnly: boolean;
}

/** The number of rows around an entry of a path that are read at once. */
const PATH_PAGE = 400;

/** The number of rows that are read at the end of a path. It is smaller, since these rows are shown first. */
const PATH_END = 160;

export class LiveSource implements Source {
  readonly kind = 'live';
  session: SessionInfo;
  private leaf: string | null;
  private last: LiveTree | undefined;
  private readonly overviews = new Overviews();
  /** Cancels the request for the view that is being read. */
  private asking: AbortController | undefined;
  /** The row of an entry whose path is requested before it is shown. */
  private begun: { id: string; row: Promise<Row | undefined> } | undefined;
  /** Rows of the filter `all` by their ids. Paths consist of these rows. */
  readonly rows = new Map<string, Row>();

  constructor(
    private readonly link: Link,
    private described: WireSession,
    private readonly observer: Observer,
  ) {
    this.session = infoOf(described);
    this.leaf = described.leafId;
  }

  /** Stores a new name, or the first message of a new session. */
  retitle(news: Partial<Pick<WireSession, 'name' | 'firstMessage'>>): void {
    this.described = { ...this.described, ...news };
    this.session = infoOf(this.described);
  }

  /** Stores the daemon's description of the session after a new connection. */
  update(session: WireSession): void {
    this.described = session;
    this.session = infoOf(session);
    this.leaf = session.leafId;
    this.rows.clear();
  }

  get selected(): string | undefined {
    return this.leaf ?? undefined;
  }

  leafId(): string | undefined {
    return this.leaf ?? undefined;
  }

  call<T>(method: string, params: object = {}, options: CallOptions = {}): Promise<T> {
    return this.link.call<T>(method, { sessionId: this.session.sessionId, ...params }, options);
  }

  private readonly read = async (params: object, signal?: AbortSignal): Promise<TreePage> => {
    const options = signal === undefined ? {} : { signal };
    const page = await this.call<TreePage>('get_tree', params, options);
    this.leaf = page.leafId;
    return page;
  };

  async view(query: ViewQuery, around?: string): Promise<TreeView> {
    // While a person types, only the last view is needed.
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    const place = around === undefined ? {} : { around };
    const chosen = selection(query);
    let page: TreePage;
    try {
      page = await this.read({ ...chosen, ...place, limit: 200 }, signal);
    } catch (error) {
      if (around === undefined || signal.aborted) throw error;
      page = await this.read({ ...chosen, limit: 200 }, signal);
    }
    const tree: LiveTree = new LiveTree(
      query,
      page,
      this.read,
      this.observer,
      this.last,
      this.overviews,
      () => this.last === tree,
    );
    this.last = tree;
    return tree;
  }

  /** Begins to read the path to the entry that is shown next. */
  beginPath(id: string): void {
    const row = this.readAround(id, PATH_END);
    // A caller that needs the path reads it again.
    row.catch(() => undefined);
    this.begun = { id, row };
  }

  async path(id: string): Promise<Path | undefined> {
    const begun = this.begun?.id === id ? this.begun.row.catch(() => undefined) : undefined;
    this.begun = undefined;
    const row = this.rows.get(id) ?? (await begun) ?? (await this.readAround(id, PATH_END));
    if (!row) return undefined;
    const path = new LivePath(id, row, this, this.observer);
    // The end of the path is shown first.
    await path.fill(Math.max(0, path.length - 60));
    return path;
  }

  /** Reads rows around an entry, and returns the row of the entry. */
  async readAround(id: string, limit = PATH_PAGE): Promise<Row | undefined> {
    const params = { filter: 'all', order: 'active-first', around: id, limit };
    const page = await this.read(params);
    for (const row of page.nodes) this.rows.set(row.id, row);
    return this.rows.get(id);
  }

  async render(ids: string[]): Promise<Rendered[]> {
    const found: Rendered[] = [];
    let rest = ids;
    while (rest.length > 0) {
      const answer = await this.call<{ entries: Rendered[]; nextIndex?: number }>(
        'render_entries',
        {
          entryIds: rest,
          results: 'ids',
        },
      );
      found.push(...answer.entries);
      if (answer.nextIndex === undefined || answer.nextIndex === 0) break;
      rest = rest.slice(answer.nextIndex);
    }
    return found;
  }

  compare(a: string, b: string): Promise<Comparison> {
    return this.call('compare_branches', { a, b });
  }

  stats(leafId?: string): Promise<Stats> {
    return this.call('get_stats', leafId === undefined ? {} : { leafId });
  }

  usage(by: UsageBy): Promise<Usage> {
    return this.link.call('get_usage', { by, limit: 100 });
  }

  async branches(): Promise<BranchRow[]> {
    const { branches } = await this.call<{ branches: BranchRow[] }>('list_branches');
    return branches.sort((a, b) => Number(b.isActive) - Number(a.isActive));
  }
}

function infoOf(session: WireSession): SessionInfo {
  const { sessionId, path, name, firstMessage, cwd, created, entryCount, readOnly } = session;
  return {
    sessionId,
    title: name ?? firstMessage,
    entryCount,
    readOnly,
    ...(path === undefined ? {} : { path }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(created === undefined ? {} : { created }),
  };
}

class LivePath implements Path {
  readonly length: number;
  private readonly rows: (Row | undefined)[];
  private readonly places = new Map<string, number>();
  /** The lowest index whose entry is read. */
  private filled: number;
  private filling: Promise<void> | undefined;

  constructor(
    readonly id: string,
    last: Row,
    private readonly source: LiveSource,
    private readonly observer: Observer,
  ) {
    this.length = last.depth + 1;
    this.rows = new Array<Row | undefined>(this.length);
    this.filled = this.length - 1;
    this.put(last);
  }

  private put(row: Row): void {
    this.rows[this.filled] = row;
    this.places.set(row.id, this.filled);
  }

  entry(at: number): Row | undefined {
    return this.rows[at];
  }

  indexOf(id: string): number {
    return this.places.get(id) ?? -1;
  }

  want(from: number): void {
    if (from >= this.filled || this.filling) return;
    this.filling = this.fill(from).then(
      () => {
        this.filling = undefined;
        this.observer.loaded();
      },
      () => {
        this.filling = undefined;
      },
    );
  }

  /** Reads upwards from the end, because only an entry names its parent. */
  async fill(to: number): Promise<void> {
    while (this.filled > to) {
      const parent = this.rows[this.filled]?.parentId;
      if (parent === null || parent === undefined) return;
      const row = this.source.rows.get(parent) ?? (await this.source.readAround(parent));
      if (!row) return;
      this.filled--;
      this.put(row);
    }
  }
}
