/** The state of the tree pane: filter, query, folds and cursor. */

import { FILTERS, type Filter, type Row } from '../wire.ts';
import { parseQuery, type Query } from '../text/query.ts';
import type { Folds, Source, TreeView } from '../source/source.ts';

/** A row that the pane must bring into view. */
export interface Reveal {
  at: number;
  how: 'center' | 'nearest' | 'keep';
}

/** The number of rows in one request while it looks for a user message. */
const AHEAD = 150;

interface Seek {
  at: number;
  step: 1 | -1;
  /** The number of messages to pass before it stops, since a key may be pressed again while rows are read. */
  passed: number;
  none: () => void;
}

export class Tree {
  view: TreeView | undefined;
  cursor = 0;
  cursorId: string | undefined;
  filter: Filter = 'default';
  typed = '';
  query: Query | undefined;
  folds: Folds = { all: false, expand: [], each: [] };
  /** Whether archived branches are shown. */
  archived = false;
  /**
   * Whether rows name the sessions that come from them. At first they do not, since the daemon must read its list of
   * sessions for this.
   */
  private sessions = false;
  marks: string[] = [];
  reveal: Reveal | undefined;
  /** The share of the entries' bodies that the search has read, below 1; undefined if no search is running. */
  searching: number | undefined;
  /** The running search for a user message. Its rows may not be read yet. */
  private seek: Seek | undefined;
  private generation = 0;
  /** The entry to which the cursor moves when the rows have been read. */
  private destination: { id: string; how: Reveal['how'] } | undefined;
  private latest = Promise.resolve();

  constructor(
    private readonly source: Source,
    private readonly changed: () => void,
    private readonly moved: (id: string) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /**
   * Reads the rows again. The cursor stays on its entry, or moves to the entry `wanted`. If another reload begins before
   * the cursor has moved, that reload moves it to `wanted`.
   */
  reload(how: Reveal['how'] = 'keep', wanted?: string): Promise<void> {
    if (wanted !== undefined && (wanted !== this.cursorId || this.isBetween))
      this.destination = { id: wanted, how };
    this.latest = this.read(++this.generation, how);
    return this.latest;
  }

  private async read(generation: number, how: Reveal['how']): Promise<void> {
    const isLatest = (): boolean => generation === this.generation;
    try {
      const { filter, query, folds, archived, sessions } = this;
      const asked = { filter, query, folds, archived, sessions };
      const view = await this.source.view(asked, this.goal);
      let goal: string | undefined;
      let at = -1;
      // The user may have moved the cursor while the index was read.
      do {
        goal = this.goal;
        at = goal === undefined ? -1 : await view.indexOf(goal);
      } while (isLatest() && goal !== this.goal);
      if (!isLatest()) return await this.latest;
      const reveal = this.destination?.how ?? how;
      this.destination = undefined;
      this.view = view;
      const to = at < 0 ? Math.min(this.cursor, Math.max(0, view.total - 1)) : at;
      // The new view has other row numbers.
      if (this.seek) this.seek.at = to + this.seek.step;
      this.setCursor(to, reveal);
      this.nameSessions();
    } catch (error) {
      if (!isLatest()) return await this.latest;
      this.destination = undefined;
      this.failed(error);
    }
  }

  /** The entry on which the cursor is after the next reading. */
  private get goal(): string | undefined {
    return this.destination?.id ?? (this.isBetween ? undefined : this.cursorId);
  }

  /**
   * Whether the row under the cursor is not read yet. Until it is, `cursorId` is the entry on which the cursor was
   * before.
   */
  get isBetween(): boolean {
    return this.view !== undefined && this.view.total > 0 && this.row() === undefined;
  }

  private nameSessions(): void {
    if (this.sessions || this.source.kind === 'file') return;
    this.sessions = true;
    // This must not delay code that waits for the first rows.
    setTimeout(() => void this.reload('keep'));
  }

  private setCursor(at: number, how: Reveal['how']): void {
    this.cursor = at;
    this.reveal = { at, how };
    this.follow();
    this.changed();
  }

  /** Sets `cursorId` to the id of the row under the cursor, or loads that row. */
  follow(): void {
    this.seekOn();
    const row = this.view?.row(this.cursor);
    if (!row) {
      this.view?.want(this.cursor - 50, this.cursor + 50);
      return;
    }
    if (row.id === this.cursorId) return;
    this.cursorId = row.id;
    this.moved(row.id);
  }

  move(to: number, how: Reveal['how'] = 'nearest'): void {
    const last = (this.view?.total ?? 0) - 1;
    this.destination = undefined;
    this.seek = undefined;
    this.setCursor(Math.max(0, Math.min(last, to)), how);
  }

  /**
   * Moves the cursor to a row that was drawn at `at`. The rows may have changed since then. If the cursor is there already,
   * the text of the row is shown again, since the reader may have scrolled away from it.
   */
  async pick(row: Row, at: number): Promise<void> {
    const isHere = row.id === this.cursorId && !this.isBetween;
    if (this.view?.row(at)?.id === row.id) this.move(at);
    else await this.reload('nearest', row.id);
    if (isHere) this.moved(row.id);
  }

  /** Opens the branches that are folded into a row, or closes the branch that begins at it. */
  toggleRow(row: Row): void {
    if (row.folded) this.open(row);
    else if (row.opened?.expand) this.close(row.opened.expand, row.id);
  }

  /** Moves the cursor to an entry. Unfolds its branch and clears the query if they hide it. */
  async go(id: string, how: Reveal['how'] = 'center'): Promise<boolean> {
    await this.reload(how, id);
    if (this.row()?.folded) {
      this.folds = { ...this.folds, expand: [...this.folds.expand, id] };
      await this.reload(how, id);
    }
    if (this.view?.row(this.cursor)?.id === id) return true;
    if (this.query) {
      this.typed = '';
      this.query = undefined;
      await this.reload(how, id);
      if (this.view?.row(this.cursor)?.id === id) return true;
    }
    return false;
  }

  row(): Row | undefined {
    return this.view?.row(this.cursor);
  }

  setFilter(filter: Filter): void {
    this.filter = filter;
    void this.reload('center');
  }

  nextFilter(): void {
    const at = FILTERS.indexOf(this.filter);
    this.setFilter(FILTERS[(at + 1) % FILTERS.length] ?? 'default');
  }

  search(text: string): void {
    this.typed = text;
    this.query = parseQuery(text);
    if (this.query?.error) this.changed();
    else void this.reload('nearest');
  }

  /** Opens the branches that are folded into a row. On any other row, closes the branch of the row. */
  toggleFold(): void {
    const row = this.row();
    if (row?.folded) return this.open(row);
    for (let above = this.cursor; above >= 0; above--) {
      const head = this.view?.row(above);
      if (!head || !row) return;
      if (!headsBranch(head) || head.indent !== row.indent) continue;
      if (head.opened?.expand) this.close(head.opened.expand, head.id);
      return;
    }
  }

  private open(row: Row): void {
    const { expand, each } = this.folds;
    this.folds =
      (row.folded?.branches ?? 1) > 1
        ? { ...this.folds, each: [...each, row.id] }
        : { ...this.folds, expand: [...expand, row.id] };
    void this.reload('keep', row.id);
  }

  private close(ids: readonly string[], head: string): void {
    const expand = this.folds.expand.filter((id) => !ids.includes(id));
    this.folds = { ...this.folds, expand };
    void this.reload('keep', head);
  }

  /** Opens all branches. If they are all open, folds the branches that were left. */
  toggleAll(): void {
    this.folds = { all: !this.folds.all, expand: [], each: [] };
    void this.reload('center');
  }

  /** Shows archived branches, or hides them. */
  toggleArchived(): void {
    this.archived = !this.archived;
    void this.reload('keep');
  }

  get isSeeking(): boolean {
    return this.seek !== undefined;
  }

  /** Moves to the next user message, or to the previous one. Calls `none` if there is none. */
  movePrompt(step: 1 | -1, none: () => void): void {
    if (this.seek?.step === step) this.seek.passed++;
    else this.seek = { at: this.cursor + step, step, passed: 0, none };
    this.seekOn();
    this.changed();
  }

  /** Searches the rows that are read for the message, and reads the next rows. */
  private seekOn(): void {
    const { seek, view } = this;
    if (!seek || !view) return;
    for (; seek.at >= 0 && seek.at < view.total; seek.at += seek.step) {
      const row = view.row(seek.at);
      if (!row) {
        const ahead = seek.at + seek.step * AHEAD;
        view.want(Math.min(seek.at, ahead), Math.max(seek.at, ahead) + 1);
        return;
      }
      if (isPrompt(row) && --seek.passed < 0) return this.move(seek.at);
    }
    this.seek = undefined;
    seek.none();
  }

  /**
   * Closes the branch, or the list of branches, that begins at this row. On any other row, moves to the start of its
   * branch.
   */
  foldOrUp(): void {
    const row = this.row();
    if (!row) return;
    if (row.opened?.expand) return this.close(row.opened.expand, row.id);
    if (row.folded && row.opened?.each) {
      const ids = row.opened.each;
      this.folds = { ...this.folds, each: this.folds.each.filter((id) => !ids.includes(id)) };
      void this.reload('keep', row.id);
      return;
    }
    for (let at = this.cursor - 1; at >= 0; at--) {
      const above = this.view?.row(at);
      if (!above) break;
      if (above.indent < row.indent || (above.indent === row.indent && headsBranch(above))) {
        return this.move(at);
      }
    }
    this.move(0);
  }

  /** Opens the row, or moves to the next row at which a branch begins. */
  unfoldOrDown(): void {
    const row = this.row();
    if (!row) return;
    if (row.folded) return this.open(row);
    const total = this.view?.total ?? 0;
    for (let at = this.cursor + 1; at < total; at++) {
      const below = this.view?.row(at);
      if (!below) break;
      if (headsBranch(below)) return this.move(at);
    }
    this.move(total - 1);
  }

  mark(): void {
    const id = this.row()?.id;
    if (id === undefined) return;
    this.marks = this.marks.includes(id)
      ? this.marks.filter((marked) => marked !== id)
      : [...this.marks, id].slice(-2);
    this.changed();
  }
}

/** Whether the row is a user message. */
function isPrompt(row: Row): boolean {
  return row.role === 'user' && !row.folded && row.style !== 'dim';
}

/** Whether a branch begins with this row. Its guides then end with `├─` or `└─`. */
export function headsBranch(row: Row): boolean {
  return /[├└]─ ?$/u.test(row.prefix);
}
