/** The session in the file that contains the page (FORMAT.md). */

import type { Comparison, Filter, Row, Stats } from '../wire.ts';
import type { Query } from '../text/query.ts';
import { fold, matches } from '../text/query.ts';
import type { Chunks } from './chunks.ts';
import { changedFiles, compareInFile, sumRows, type FileStats } from './file-compare.ts';
import { FileRows, FileTree, findSorted, searchView, type FileRow } from './file-rows.ts';
import type { FileView } from './file-view.ts';
import { inTime } from './in-time.ts';
import { leftView } from './left.ts';
import { blockText } from './texts.ts';
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

interface Meta {
  format: number;
  session: {
    sessionId: string;
    title?: string;
    cwd?: string;
    created?: string;
    entryCount: number;
  };
  leafId: string | null;
  selected: number | null;
  rowCount: number;
  rowsPerChunk: number;
  rowChunks: number;
  bodyChunks: number;
  exportedAt?: string;
  scope?: string;
  redacted: boolean;
  redactions: { kind: string; count: number; entryIds?: string[] }[];
}

/**
 * If the file does not list the changed files, they are searched for in this number of entries of a compared branch.
 */
const FILES_FROM = 2000;

/** The number of entries of a path that are read before it is shown. */
const SHOWN_FIRST = 60;

/** The most entries that a path keeps in memory. */
const ENTRIES_KEPT = 2000;

/** The most chunks of bodies that stay in memory. */
const BODIES_KEPT = 64;

export class FileSource implements Source {
  readonly kind = 'file';
  readonly session: SessionInfo;
  private readonly rows: FileRows;
  private readonly views = new Map<Filter, FileView>();
  /** The same in the order of time. */
  private readonly timeViews = new Map<Filter, FileView>();
  private readonly chunks = new Map<number, Promise<void>>();
  private readonly bodies = new Map<number, Promise<Map<string, Rendered>>>();
  private numbers: FileStats | undefined;
  /** The number of each row's parent. */
  private parents: Int32Array | undefined;

  private constructor(
    private readonly store: Chunks,
    readonly meta: Meta,
    private readonly observer: Observer,
  ) {
    const { sessionId, title, cwd, created, entryCount } = meta.session;
    const info = { sessionId, title: title ?? '', entryCount, readOnly: true };
    this.session = {
      ...info,
      ...(cwd === undefined ? {} : { cwd }),
      ...(created === undefined ? {} : { created }),
    };
    this.rows = new FileRows(meta.rowCount);
  }

  /** Reads only the parts for the first screen. `prefetch` reads the rest. */
  static async open(store: Chunks, observer: Observer): Promise<FileSource> {
    const meta = (await store.read('meta')) as Meta;
    if (meta.format !== 1) {
      throw new Error('This file was made by a newer treelined than the page in it can read.');
    }
    const source = new FileSource(store, meta, observer);
    const first = meta.selected === null ? [] : [source.loadRow(meta.selected)];
    await Promise.all([source.fileView('default'), ...first]);
    return source;
  }

  get selected(): string | undefined {
    return this.meta.selected === null ? undefined : this.rows.rows[this.meta.selected]?.id;
  }

  leafId(): string | undefined {
    return this.meta.leafId ?? undefined;
  }

  /** Reads all rows in short steps, and prepares the search in them. */
  async prefetch(): Promise<void> {
    for (let chunk = 0; chunk < this.meta.rowChunks; chunk++) {
      await idle();
      await this.loadChunk(chunk);
    }
    for (let at = 0; at < this.rows.count; at += 2000) {
      this.rows.prepare(at, Math.min(this.rows.count, at + 2000));
      await pause();
    }
  }

  async view(query: ViewQuery): Promise<TreeView> {
    const whole = await this.fileView(query.filter);
    const leaf = this.visibleLeaf(whole);
    // A hit is shown where it is in the tree.
    const folds = !query.query && !query.folds.all && query.filter !== 'labeled-only';
    let view: FileView;
    if (folds) view = leftView(whole, leaf, this.rows, query.folds);
    else {
      await this.allRows();
      view = this.timeViews.get(query.filter) ?? inTime(whole, leaf, this.rows);
      this.timeViews.set(query.filter, view);
      if (query.query) view = searchView(view, this.rows, query.query, this.deep(query.query));
    }
    const load = (row: number) => void this.loadRow(row);
    return new FileTree(query, whole, view, this.rows, load, leaf, this.observer);
  }

  async path(id: string): Promise<Path | undefined> {
    if (!this.rows.numbers.has(id)) await this.allRows();
    const last = this.rows.numbers.get(id);
    if (last === undefined) return undefined;
    // The depths of all rows show which rows are above an entry, so that only the rows in view must be read.
    this.parents ??= parentsOf((await this.fileView('all')).depth);
    const path: number[] = [];
    for (let at = last; at >= 0; at = this.parents[at] ?? -1) path.push(at);
    const load = (row: number): Promise<void> => this.loadRow(row);
    const made = new FilePath(id, path.reverse(), this.rows, load);
    await made.load(path.length - SHOWN_FIRST, path.length);
    return made;
  }

  async render(ids: string[]): Promise<Rendered[]> {
    const found: Rendered[] = [];
    for (const entryId of ids) {
      if (!this.rows.numbers.has(entryId)) await this.allRows();
      const row = this.rows.rows[this.rows.numbers.get(entryId) ?? -1];
      if (!row) continue;
      const body = (await this.bodiesOf(row.body)).get(entryId);
      const role = row.role === undefined ? {} : { role: row.role };
      found.push(body ?? { entryId, type: row.type, ...role, blocks: [] });
    }
    return found;
  }

  async compare(a: string, b: string): Promise<Comparison> {
    await this.allRows();
    const stats = await this.fileStats();
    const compared = compareInFile(this.rows, stats, a, b);
    if (stats.files) return compared;
    for (const side of [compared.a, compared.b]) {
      const bodies = await this.render(side.entryIds.slice(0, FILES_FROM));
      side.files.modifiedFiles = changedFiles(bodies.flatMap((body) => body.blocks));
    }
    return compared;
  }

  async stats(leafId?: string): Promise<Stats | undefined> {
    const stats = await this.fileStats();
    if (leafId === undefined) return stats.total;
    await this.allRows();
    // Many branches are counted one after another, and the page can draw in between.
    await pause();
    const at = this.rows.numbers.get(leafId);
    return at === undefined ? undefined : sumRows(this.rows, stats, this.rows.path(at));
  }

  async branches(): Promise<BranchRow[]> {
    await this.allRows();
    const tips = this.rows.branches();
    return tips.sort((x, y) => Number(y.isActive) - Number(x.isActive));
  }

  // Bodies are searched in the background. This has, for each query, the rows whose bodies match.
  private readonly deepHits = new Map<string, Set<number>>();

  private deep(query: Query): ReadonlySet<number> {
    return this.deepHits.get(query.text) ?? new Set();
  }

  /** Searches the bodies. Calls `progress` with the share that was read, and stops if it returns false. */
  async searchBodies(
    query: Query,
    progress: (share: number, news: boolean) => boolean,
  ): Promise<void> {
    if (this.deepHits.has(query.text) || query.error) return;
    await this.allRows();
    const hits = new Set<number>();
    for (let chunk = 0; chunk < this.meta.bodyChunks; chunk++) {
      const before = hits.size;
      const bodies = (await this.store.read(`bodies-${chunk}`)) as Rendered[];
      for (const { entryId, blocks } of bodies) {
        const at = this.rows.numbers.get(entryId);
        if (at === undefined || hits.has(at)) continue;
        const text = blocks.map(blockText).join('\n');
        const whole = `${this.rows.text(at)}\n${fold(text)}`;
        if (query.pattern ? query.pattern.test(text) : matches(query, whole)) hits.add(at);
      }
      this.deepHits.set(query.text, hits);
      const last = chunk === this.meta.bodyChunks - 1;
      if (!progress((chunk + 1) / this.meta.bodyChunks, hits.size > before || last)) {
        if (!last) this.deepHits.delete(query.text);
        return;
      }
      await pause();
    }
  }

  private async fileView(filter: Filter): Promise<FileView> {
    const known = this.views.get(filter);
    if (known) return known;
    const view = (await this.store.read(`view-${filter}`)) as FileView;
    this.views.set(filter, view);
    return view;
  }

  private visibleLeaf(view: FileView): number {
    let at = this.rows.numbers.get(this.meta.leafId ?? '') ?? -1;
    while (at >= 0 && findSorted(view.rows, at) < 0) at = this.rows.rows[at]?.parent ?? -1;
    return at;
  }

  private loadRow(row: number): Promise<void> {
    return this.loadChunk(Math.floor(row / this.meta.rowsPerChunk));
  }

  private loadChunk(chunk: number): Promise<void> {
    const known = this.chunks.get(chunk);
    if (known) return known;
    const loading = this.store.read(`rows-${chunk}`).then((rows) => {
      this.rows.add(chunk * this.meta.rowsPerChunk, rows as FileRow[]);
      this.observer.loaded();
    });
    this.chunks.set(chunk, loading);
    return loading;
  }

  private async allRows(): Promise<void> {
    for (let chunk = 0; chunk < this.meta.rowChunks; chunk++) await this.loadChunk(chunk);
  }

  private bodiesOf(chunk: number): Promise<Map<string, Rendered>> {
    const known = this.bodies.get(chunk);
    if (known) {
      // Deleting and setting moves the chunk to the end of the map, which is ordered by last use.
      this.bodies.delete(chunk);
      this.bodies.set(chunk, known);
      return known;
    }
    const loading = this.store
      .read(`bodies-${chunk}`)
      .then((bodies) => new Map((bodies as Rendered[]).map((body) => [body.entryId, body])));
    this.bodies.set(chunk, loading);
    for (const oldest of this.bodies.keys()) {
      if (this.bodies.size <= BODIES_KEPT) break;
      this.bodies.delete(oldest);
    }
    return loading;
  }

  private async fileStats(): Promise<FileStats> {
    return (this.numbers ??= (await this.store.read('stats')) as FileStats);
  }
}

class FilePath implements Path {
  readonly length: number;
  /** The objects of rows that were read, so that an entry is always the same object. */
  private readonly made = new Map<number, Row>();

  constructor(
    readonly id: string,
    private readonly path: number[],
    private readonly rows: FileRows,
    private readonly loadRow: (row: number) => Promise<void>,
  ) {
    this.length = path.length;
  }

  entry(at: number): Row | undefined {
    const known = this.made.get(at);
    if (known) return known;
    const row = this.rows.rows[this.path[at] ?? -1];
    if (!row) return undefined;
    const parent = this.rows.rows[row.parent];
    const made = {
      ...row,
      parentId: parent?.id ?? null,
      onActivePath: row.onActivePath ?? false,
      isLeaf: row.isLeaf ?? false,
      childCount: 0,
      isBranchPoint: false,
      depth: at,
      indent: 0,
      prefix: '',
    };
    if (!parent && row.parent >= 0) return made;
    if (this.made.size > ENTRIES_KEPT) this.made.clear();
    this.made.set(at, made);
    return made;
  }

  want(from: number, to: number): void {
    void this.load(from, to);
  }

  /** Reads the rows of the path from index `from` to `to`. */
  async load(from: number, to: number): Promise<void> {
    const missing = this.path.slice(Math.max(0, from), to).filter((row) => !this.rows.rows[row]);
    await Promise.all(missing.map((row) => this.loadRow(row)));
  }

  indexOf(id: string): number {
    return findSorted(this.path, this.rows.numbers.get(id) ?? -1);
  }
}

/** For each row the number of its parent, −1 for a root. Computed from the depths of rows in pre-order. */
export function parentsOf(depths: readonly number[]): Int32Array {
  const parents = new Int32Array(depths.length);
  const open: number[] = [];
  depths.forEach((depth, at) => {
    open.length = Math.min(depth, open.length);
    parents[at] = open.at(-1) ?? -1;
    open.push(at);
  });
  return parents;
}

/** Waits until the browser has nothing else to do. */
function idle(): Promise<unknown> {
  return new Promise((done) => requestIdleCallback(done, { timeout: 300 }));
}

function pause(): Promise<void> {
  return new Promise((done) => setTimeout(done, 0));
}
