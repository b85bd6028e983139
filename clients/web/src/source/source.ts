/** Where the page gets a session from: the file that it is part of, or a daemon. */

import type { Block, Comparison, Filter, Row, Stats, Usage, UsageBy } from '../wire.ts';
import type { Query } from '../text/query.ts';

/** A session, for the head of the page. */
export interface SessionInfo {
  sessionId: string;
  /** Its file, where the daemon runs. */
  path?: string;
  title: string;
  cwd?: string;
  created?: string;
  entryCount: number;
  readOnly: boolean;
}

/** The branches that were left: which of them are not one row (protocol.md §6.8). */
export interface Folds {
  /** Whether all branches are open. */
  all: boolean;
  /** The branches that hold these entries are open. */
  expand: readonly string[];
  /** The branches at the forks of these rows have one row each. */
  each: readonly string[];
}

/** The part of the tree to show. */
export interface ViewQuery {
  filter: Filter;
  query: Query | undefined;
  folds: Folds;
  /** Whether archived branches are shown. */
  archived?: boolean;
  /** Whether rows name the sessions that come from their entries. */
  sessions?: boolean;
}

/** One number a row, for the minimap. */
export interface Overview {
  /** How far a row is indented; 65535 where it is not known yet. */
  indent: Uint16Array;
  /** Bits of `MARK`. */
  marks: Uint8Array;
}

export const MARK = { active: 1, label: 2, leaf: 4, user: 8 } as const;

/** The rows of a tree, of which only some may be loaded. */
export interface TreeView {
  readonly query: ViewQuery;
  readonly total: number;
  readonly hidden: number;
  /** The archived branches, shown or not; a file shows them all. */
  readonly archivedBranches?: number;
  /** The row, or undefined while it is not loaded. */
  row(at: number): Row | undefined;
  /** Loads rows; `changed` of the source's observer follows if there are new ones. */
  want(from: number, to: number): void;
  /** The row of an entry, or of its nearest visible ancestor; −1 if there is none. */
  indexOf(id: string): Promise<number>;
  overview(): Overview | undefined;
}

/** The entries from the root to an entry. Their number is known before they are loaded. */
export interface Path {
  readonly id: string;
  readonly length: number;
  entry(at: number): Row | undefined;
  want(from: number, to: number): void;
  /** The index of an entry in this path, or −1. Entries that are not loaded are not found. */
  indexOf(id: string): number;
}

export interface Observer {
  /** Rows or entries have been loaded: draw again. */
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
  /** Entries as blocks. Those that are missing are left out. */
  render(ids: string[]): Promise<Rendered[]>;
  compare(a: string, b: string): Promise<Comparison>;
  /** Statistics of the session, or of the branch that ends with an entry. */
  stats(leafId?: string): Promise<Stats | undefined>;
  /** What all sessions have used; only a daemon knows it. */
  usage?(by: UsageBy): Promise<Usage>;
  /** Tips of branches, the active one first. */
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
  /** The label, else what a person said first after the fork, else the preview of the tip (protocol.md §3.8). */
  name: string;
  label?: string;
  isActive: boolean;
}
