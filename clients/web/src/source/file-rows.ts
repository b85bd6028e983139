/** The rows and views of a page file (FORMAT.md, "Rows" and "Views"). */

import type { Row } from '../wire.ts';
import { fold, matches, type Query } from '../text/query.ts';
import type { FileView, LeftView, Line } from './file-view.ts';
import {
  MARK,
  type BranchRow,
  type Observer,
  type Overview,
  type TreeView,
  type ViewQuery,
} from './source.ts';

/** The types of entries that are not steps, so that they make no branch (semantics.md, "The terms"). */
const BOOKKEEPING: ReadonlySet<string> = new Set(['label', 'session_info', 'custom', 'usage']);

/** A row in the format of the file. */
export interface FileRow extends Partial<
  Omit<Row, 'depth' | 'indent' | 'prefix' | 'childCount' | 'isBranchPoint'>
> {
  id: string;
  type: string;
  preview: string;
  parent: number;
  body: number;
}

/** The rows of the file that have been read. */
export class FileRows {
  readonly rows: (FileRow | undefined)[];
  readonly numbers = new Map<string, number>();
  private readonly texts: (string | undefined)[];
  /** The times of rows in milliseconds; NaN for a row that was not read or has no time. */
  private readonly times: Float64Array;

  constructor(readonly count: number) {
    this.rows = new Array<FileRow | undefined>(count);
    this.texts = new Array<string | undefined>(count);
    this.times = new Float64Array(count).fill(NaN);
  }

  add(first: number, rows: FileRow[]): void {
    rows.forEach((row, at) => {
      this.rows[first + at] = row;
      if (!this.numbers.has(row.id)) this.numbers.set(row.id, first + at);
    });
  }

  /** The time of a row in milliseconds, or NaN. */
  time(at: number): number {
    const known = this.times[at] ?? NaN;
    if (!Number.isNaN(known)) return known;
    return (this.times[at] = Date.parse(this.rows[at]?.timestamp ?? ''));
  }

  /** The folded text of a row, in which a query searches. */
  text(at: number): string {
    const known = this.texts[at];
    if (known !== undefined) return known;
    const row = this.rows[at];
    if (!row) return '';
    const words = [row.role ?? row.type, row.label ?? '', row.preview];
    return (this.texts[at] = fold(words.join('\n')));
  }

  /** Whether a query matches a row. */
  finds(query: Query, at: number): boolean {
    if (query.pattern) return query.pattern.test(this.rows[at]?.preview ?? '');
    return matches(query, this.text(at));
  }

  /** Prepares the texts of rows, so that the first search is fast. */
  prepare(from: number, to: number): void {
    for (let at = from; at < to; at++) this.text(at);
  }

  path(at: number): number[] {
    const path: number[] = [];
    for (let next = at; next >= 0; next = this.rows[next]?.parent ?? -1) {
      path.push(next);
      if (path.length > this.count) break;
    }
    return path.reverse();
  }

  /** The branches by their tips, with the names of `list_branches` (protocol.md §3.8). All rows must have been read. */
  branches(): BranchRow[] {
    const isStep = (at: number) => !BOOKKEEPING.has(this.rows[at]?.type ?? '');
    // A parent comes before its children in the file.
    const above: number[] = [];
    const below = new Array<number>(this.count).fill(0);
    for (let at = 0; at < this.count; at++) {
      const parent = this.rows[at]?.parent ?? -1;
      const step = parent < 0 || isStep(parent) ? parent : (above[parent] ?? -1);
      above.push(step);
      if (step >= 0 && isStep(at)) below[step] = (below[step] ?? 0) + 1;
    }
    const tips: BranchRow[] = [];
    this.rows.forEach((row, tip) => {
      if (!row || below[tip] !== 0 || !isStep(tip)) return;
      let said: string | undefined;
      for (let at = tip; at === tip || (at >= 0 && below[at] === 1); at = above[at] ?? -1)
        said = prompt(this.rows[at]) ?? said;
      const { id, label, preview } = row;
      const name = label ?? said ?? preview;
      const isActive = row.onActivePath === true;
      tips.push({ tipId: id, name, isActive, ...(label === undefined ? {} : { label }) });
    });
    return tips;
  }
}

/** The text of a user message. A dim message was written by a tool, and has none. */
function prompt(row: FileRow | undefined): string | undefined {
  if (row?.type !== 'message' || row.role !== 'user' || row.style !== undefined) return undefined;
  return row.preview.replaceAll('[image]', '').trim() === '' ? undefined : row.preview;
}

/** The rows of a view that match a query, as a list without guides. */
export function searchView(
  view: FileView,
  rows: FileRows,
  query: Query,
  also: ReadonlySet<number>,
): FileView {
  const found = view.rows.filter((at) => also.has(at) || rows.finds(query, at));
  const zeros = found.map(() => 0);
  return {
    hidden: view.hidden + view.rows.length - found.length,
    rows: found,
    depth: zeros,
    indent: zeros,
    prefix: zeros,
    prefixes: [''],
  };
}

/** For each row, its visible parent and its number of visible children. */
interface Family {
  children: Uint32Array;
  parents: Int32Array;
}

const families = new WeakMap<FileView, Family>();

function familyOf(view: FileView, count: number): Family {
  const known = families.get(view);
  if (known) return known;
  const family = { children: new Uint32Array(count), parents: new Int32Array(count).fill(-1) };
  const path: number[] = [];
  view.rows.forEach((number, at) => {
    const depth = view.depth[at] ?? 0;
    path.length = depth;
    path.push(number);
    const parent = depth > 0 ? path[depth - 1] : undefined;
    if (parent === undefined) return;
    family.parents[number] = parent;
    family.children[parent] = (family.children[parent] ?? 0) + 1;
  });
  families.set(view, family);
  return family;
}

/**
 * The most named branches of a row, the most user messages that are read for a name, and the most characters of a
 * name and of a line.
 */
const [NAMED, PROMPTS, NAME, LINE] = [8, 4, 40, 200];

function openedBy({ expand, each }: Line): Pick<Row, 'opened'> {
  return expand || each ? { opened: { ...(expand && { expand }), ...(each && { each }) } } : {};
}

function shorten(text: string, most: number): string {
  const chars = Array.from(text);
  return chars.length > most ? `${chars.slice(0, most - 1).join('')}…` : text;
}

/** The most rows for which a tree keeps objects. */
const MADE = 5000;

export class FileTree implements TreeView {
  readonly total: number;
  readonly hidden: number;
  private readonly children: Uint32Array;
  private readonly parents: Int32Array;
  private drawn: Overview | undefined;
  private drawnAll = false;
  /** By the number of a row, its index in a view without folded branches. */
  private places: Map<number, number> | undefined;
  /** The rows that were read, so that a row stays the same object. */
  private readonly made = new Map<number, Row>();

  constructor(
    readonly query: ViewQuery,
    whole: FileView,
    private readonly view: FileView,
    private readonly rows: FileRows,
    private readonly load: (row: number) => void,
    private readonly leaf: number,
    readonly observer: Observer,
  ) {
    this.total = view.rows.length;
    this.hidden = view.hidden;
    ({ children: this.children, parents: this.parents } = familyOf(whole, rows.count));
  }

  row(at: number): Row | undefined {
    const known = this.made.get(at);
    if (known) return known;
    const number = this.view.rows[at];
    const row = number === undefined ? undefined : this.rows.rows[number];
    if (!row || number === undefined) return undefined;
    const line = this.left?.lines.get(at);
    const preview = line?.heads && this.lineText(line);
    const children = this.children[number] ?? 0;
    const parent = this.parents[number] ?? -1;
    if (this.made.size > MADE) this.made.clear();
    const made = {
      ...row,
      parentId: parent < 0 ? null : (this.rows.rows[parent]?.id ?? null),
      onActivePath: row.onActivePath ?? false,
      isLeaf: number === this.leaf,
      childCount: children,
      isBranchPoint: children > 1,
      depth: this.view.depth[at] ?? 0,
      indent: this.view.indent[at] ?? 0,
      prefix: this.view.prefixes[this.view.prefix[at] ?? 0] ?? '',
      ...(line && openedBy(line)),
    };
    if (line?.heads) {
      const { branches = 1, entries = 1 } = line;
      const { id, type, timestamp, label, parentId, childCount, depth, indent, prefix, opened } =
        made;
      const place = { parentId, childCount, depth, indent, prefix, onActivePath: false };
      const folded: Row = {
        ...{ id, type, preview: preview ?? '', folded: { branches, entries } },
        ...{ ...place, isLeaf: false, isBranchPoint: children > 1 },
        ...(timestamp !== undefined && { timestamp }),
        ...(label !== undefined && { label }),
        ...(opened && { opened }),
      };
      // If its text needs rows that are not read yet, the row is made later.
      if (preview !== undefined) this.made.set(at, folded);
      return preview === undefined ? undefined : folded;
    }
    this.made.set(at, made);
    return made;
  }

  private get left(): LeftView | undefined {
    return 'lines' in this.view ? (this.view as LeftView) : undefined;
  }

  /** The text of folded branches, the same as the daemon's; undefined if a needed row is not read yet. */
  private lineText(line: Line): string | undefined {
    const { heads = [], branches = 1, entries = 1 } = line;
    const names = heads.slice(0, NAMED).map((head) => this.branchName(head));
    if (!names.every((name) => name !== undefined)) return undefined;
    const several = branches > 1;
    const parts = [
      ...(several ? [`${branches} branches`] : []),
      entries === 1 ? '1 entry' : `${entries} entries`,
      ...names.map((name) => shorten(name, several ? NAME : LINE)),
    ];
    return shorten(parts.join(' · '), LINE);
  }

  /** The name of a branch: the given name, or its first user message, or the preview of its first entry. */
  private branchName(head: number): string | undefined {
    const { whole, sizes } = this.left ?? { whole: this.view, sizes: new Uint32Array() };
    const given = this.rows.rows[whole.rows[head] ?? -1]?.branchName;
    if (given !== undefined) return given;
    let prompts = 0;
    for (let at = head; at < head + (sizes[head] ?? 1) && prompts < PROMPTS; at++) {
      const number = whole.rows[at] ?? -1;
      const row = this.rows.rows[number];
      if (!row) {
        this.load(number);
        return undefined;
      }
      if (row.type === 'message' && row.role === 'user') prompts++;
      const said = prompt(row);
      if (said !== undefined) return said;
    }
    return this.rows.rows[whole.rows[head] ?? -1]?.preview ?? '';
  }

  want(from: number, to: number): void {
    for (let at = Math.max(0, from); at < Math.min(to, this.total); at++) {
      const number = this.view.rows[at];
      if (number !== undefined && !this.rows.rows[number]) this.load(number);
    }
  }

  indexOf(id: string): Promise<number> {
    let number = this.rows.numbers.get(id) ?? -1;
    for (let steps = 0; number >= 0 && steps <= this.rows.count; steps++) {
      const at = this.placeOf(number);
      if (at !== undefined) return Promise.resolve(at);
      number = this.rows.rows[number]?.parent ?? -1;
    }
    return Promise.resolve(-1);
  }

  /** Where the row of a number is, if it is shown. */
  private placeOf(number: number): number | undefined {
    if (this.left) return this.left.places.get(number);
    this.places ??= new Map(this.view.rows.map((each, at) => [each, at]));
    return this.places.get(number);
  }

  overview(): Overview {
    if (this.drawn && this.drawnAll) return this.drawn;
    const indent = Uint16Array.from(this.view.indent);
    const marks = new Uint8Array(this.total);
    this.drawnAll = true;
    for (let at = 0; at < this.total; at++) {
      const number = this.view.rows[at] ?? -1;
      const row = this.rows.rows[number];
      if (!row) this.drawnAll = false;
      marks[at] =
        (row?.onActivePath ? MARK.active : 0) |
        (row?.label ? MARK.label : 0) |
        (number === this.leaf ? MARK.leaf : 0) |
        (row?.role === 'user' ? MARK.user : 0);
    }
    return (this.drawn = { indent, marks });
  }
}

/** The index of a number in an ascending array; −1 if it is missing. */
export function findSorted(numbers: readonly number[], wanted: number): number {
  let [low, high] = [0, numbers.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const number = numbers[middle] ?? 0;
    if (number === wanted) return middle;
    if (number < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
