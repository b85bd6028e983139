/** The source of a session: the file that contains the page, or a daemon. */

import type { Block, Comparison, Filter, Row, Stats, Usage, UsageBy } from '../wire.ts';
import type { Query } from '../text/query.ts';

/** The members of a session that the head of the page shows. */
export interface SessionInfo {
  sessionId: string;
  /** The path of its file on the machine of the daemon. */
  path?: string;
  title: string;
  cwd?: string;
  created?: string;
  entryCount: number;
  readOnly: boolean;
}

/** The branches that are not folded into one row (protocol.md §6.8). */
export interface Folds {
  /** Whether all branches are open. */
  all: boolean;
  /** The branches that contain these entries are open. */
  expand: readonly string[];
  /** The branches at the forks of these rows have one row each. */
  each: readonly string[];
}

/** The part of the tree that is shown. */
export interface ViewQuery {
  filter: Filter;
  query: Query | undefined;
  folds: Folds;
  /** Whether archived branches are shown. */
  archived?: boolean;
  /** Whether rows name the sessions that come from their entries. */
  sessions?: boolean;
}

/** One number for each row, for the minimap. */
export interface Overview {
  /** The indent of each row; 65535 if it is not known yet. */
  indent: Uint16Array;
  /** The marks of each row, as bits of `MARK`. */
  marks: Uint8Array;
}

export const MARK = { active: 1, label: 2, leaf: 4, user: 8 } as const;

/** The rows of a tree. Only some may be loaded. */
export interface TreeView {
  readonly query: ViewQuery;
  readonly total: number;
  readonly hidden: number;
  /** The number of archived branches, shown or not. Absent for a file, which always shows them. */
  readonly archivedBranches?: number;
  /** The number of branches in the cold file, which no tree shows. */
  readonly shedBranches?: number;
  /** The row; undefined until it is loaded. */
  row(at: number): Row | undefined;
  /** Loads rows. If there are new ones, the source then calls `changed` of its observer. */
  want(from: number, to: number): void;
  /** The index of the row of an entry, or of its nearest visible ancestor; −1 if there is none. */
  indexOf(id: string): Promise<number>;
  overview(): Overview | undefined;
}

/** The entries from the root to an entry. Their number is known before they are loaded. */
export interface Path {
  readonly id: string;
  readonly length: number;
  entry(at: number): Row | undefined;
  want(from: number, to: number): void;
  /** The index of an entry in this path; −1 if it is not in the path or not loaded. */
  indexOf(id: string): number;
}

export interface Observer {
  /** Rows or entries were loaded, so the page must be drawn again. */
  loaded(): void;
}

export interface Source {
  readonly kind: 'file' | 'live';
  readonly session: SessionInfo;
  /** The entry to select at the start. */
  readonly selected: string | undefined;
  leafId(): string | undefined;
  view(query: ViewQuery, around?: string): Promise<TreeView>;
  path(id: string): Promise<Path | undefined>;
  /** Returns entries as blocks. Missing entries are left out. */
  render(ids: string[]): Promise<Rendered[]>;
  compare(a: string, b: string): Promise<Comparison>;
  /** The statistics of the session, or of the branch that ends with an entry. */
  stats(leafId?: string): Promise<Stats | undefined>;
  /** The usage of all sessions. Only a daemon has it. */
  usage?(by: UsageBy): Promise<Usage>;
  /** The branches by their tips, the active one first. */
  branches(): Promise<BranchRow[]>;
}

/** An entry as blocks. */
export interface Rendered {
  entryId: string;
  type: string;
  role?: string;
  timestamp?: string;
  model?: string;
  blocks: Block[];
  omittedBlocks?: number;
}

export interface BranchRow {
  tipId: string;
  /** The label, or the first user message after the fork, or the preview of the tip (protocol.md §3.8). */
  name: string;
  label?: string;
  isActive: boolean;
}
