/** The rows of a tree that a daemon draws. They are read in pages. */

import type { Row } from '../wire.ts';
import { wireQuery } from '../text/query.ts';
import { MARK, type Observer, type Overview, type TreeView, type ViewQuery } from './source.ts';

/** The number of rows in a page. */
const PAGE = 200;

/** The number of rows in a page of the overview. Reading such a page takes less time than a frame. */
const OVERVIEW_PAGE = 1000;

/** A tree with more rows has no overview, since reading all rows would take too long. */
const OVERVIEW_MOST = 300_000;

/** A search with more hits has no overview either. */
const OVERVIEW_HITS = 5000;

export interface TreePage {
  nodes: Row[];
  leafId: string | null;
  total: number;
  hidden: number;
  archivedBranches?: number;
  shedBranches?: number;
  offset: number;
  revision: string;
}

/** The drawn overviews, by the params that select their rows. They are valid as long as the tree does not change. */
export class Overviews {
  private readonly drawn = new Map<string, { revision: string; overview: Overview }>();

  get(selected: string, revision: string): Overview | undefined {
    const found = this.drawn.get(selected);
    return found?.revision === revision ? found.overview : undefined;
  }

  /** Keeps an overview. Only a few fit: those of the five filters, without queries. */
  set(selected: string, revision: string, overview: Overview): void {
    if (this.drawn.size > 8) this.drawn.clear();
    this.drawn.set(selected, { revision, overview });
  }
}

export type ReadPage = (params: object) => Promise<TreePage>;

/** The params of `get_tree` that select rows. */
export function selection(query: ViewQuery): object {
  return {
    filter: query.filter,
    render: 'unicode',
    ...(query.archived === true ? { archived: true } : {}),
    ...(query.sessions === true ? { sessions: true } : {}),
    ...(query.query ? wireQuery(query.query) : {}),
    ...(query.folds.all
      ? {}
      : { fold: 'left', expand: query.folds.expand, each: query.folds.each }),
  };
}

export class LiveTree implements TreeView {
  readonly total: number;
  readonly hidden: number;
  readonly archivedBranches: number;
  readonly shedBranches: number;
  private readonly rows: (Row | undefined)[];
  private readonly places = new Map<string, number>();
  private readonly asked = new Set<number>();
  private drawn: Overview | undefined;
  private drawing = false;
  private readonly revision: string;

  constructor(
    readonly query: ViewQuery,
    page: TreePage,
    private readonly read: ReadPage,
    private readonly observer: Observer,
    before: LiveTree | undefined,
    private readonly overviews: Overviews,
    /** Whether this is still the tree on the screen. */
    private readonly isShown: () => boolean,
  ) {
    this.total = page.total;
    this.hidden = page.hidden;
    this.archivedBranches = page.archivedBranches ?? 0;
    this.shedBranches = page.shedBranches ?? 0;
    this.revision = page.revision;
    this.rows = new Array<Row | undefined>(page.total);
    this.take(page);
    const known = overviews.get(this.selected(), page.revision);
    if (known?.indent.length === page.total) {
      this.drawn = known;
      this.drawing = true;
      return;
    }
    // The previous overview is nearly right, and better than none.
    if (
      before?.drawn &&
      before.query.filter === query.filter &&
      !query.query === !before.query.query
    ) {
      this.drawn = resized(before.drawn, this.total);
    }
  }

  private selected(): string {
    return JSON.stringify(this.overviewSelection());
  }

  /** The params for an overview, which shows no sessions. */
  private overviewSelection(): object {
    return selection({ ...this.query, sessions: false });
  }

  private take(page: TreePage): void {
    page.nodes.forEach((row, at) => {
      this.rows[page.offset + at] = row;
      this.places.set(row.id, page.offset + at);
    });
  }

  row(at: number): Row | undefined {
    return this.rows[at];
  }

  want(from: number, to: number): void {
    const last = Math.min(to, this.total) - 1;
    const first = Math.max(0, from);
    for (let page = Math.floor(first / PAGE); page * PAGE <= last; page++) {
      if (this.asked.has(page) || this.areLoaded(first, last, page)) continue;
      this.asked.add(page);
      this.page({ offset: page * PAGE, limit: PAGE }).catch(() => this.asked.delete(page));
    }
  }

  /** Whether these rows of a page are loaded. */
  private areLoaded(first: number, last: number, page: number): boolean {
    const end = Math.min(last + 1, (page + 1) * PAGE);
    for (let at = Math.max(first, page * PAGE); at < end; at++) if (!this.rows[at]) return false;
    return true;
  }

  private async page(place: object): Promise<TreePage> {
    const page = await this.read({ ...selection(this.query), ...place });
    if (page.total === this.total) {
      this.take(page);
      this.observer.loaded();
    }
    return page;
  }

  async indexOf(id: string): Promise<number> {
    const known = this.places.get(id);
    if (known !== undefined) return known;
    if (this.total === 0) return -1;
    try {
      const page = await this.page({ around: id, limit: 1 });
      const row = page.nodes[0];
      return row ? page.offset : -1;
    } catch {
      // The entry is not in this session.
      return -1;
    }
  }

  overview(): Overview | undefined {
    const most = this.query.query ? OVERVIEW_HITS : OVERVIEW_MOST;
    if (!this.drawing && this.total <= most) {
      this.drawing = true;
      setTimeout(
        () => void this.drawOverview().catch(() => undefined),
        this.total > 5000 ? 1500 : 200,
      );
    }
    return this.drawn;
  }

  private async drawOverview(): Promise<void> {
    const indent = new Uint16Array(this.total).fill(65535);
    const marks = new Uint8Array(this.total);
    for (let offset = 0; offset < this.total; offset += OVERVIEW_PAGE) {
      await idle();
      if (!this.isShown()) return;
      const page = await this.read({ ...this.overviewSelection(), offset, limit: OVERVIEW_PAGE });
      if (page.total !== this.total) return;
      page.nodes.forEach((row, at) => {
        indent[offset + at] = row.indent;
        marks[offset + at] =
          (row.onActivePath ? MARK.active : 0) |
          (row.label === undefined ? 0 : MARK.label) |
          (row.isLeaf ? MARK.leaf : 0) |
          (row.role === 'user' ? MARK.user : 0);
      });
    }
    this.drawn = { indent, marks };
    this.overviews.set(this.selected(), this.revision, this.drawn);
    this.observer.loaded();
  }
}

/** Waits until the browser has nothing else to do. */
function idle(): Promise<unknown> {
  return new Promise((done) => requestIdleCallback(done, { timeout: 2000 }));
}

function resized(before: Overview, total: number): Overview {
  const indent = new Uint16Array(total).fill(65535);
  const marks = new Uint8Array(total);
  indent.set(before.indent.subarray(0, total));
  marks.set(before.marks.subarray(0, total));
  return { indent, marks };
}
