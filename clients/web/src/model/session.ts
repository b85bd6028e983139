/** An open session: its tree, the path to the selected entry, and the bodies of entries. */

import type { Comparison, Row } from '../wire.ts';
import type { Path, Source } from '../source/source.ts';
import { Bodies } from './bodies.ts';
import { Tree } from './tree.ts';

/** Up to this number of entries, all bodies of a path are read at once. */
const SHORT = 200;

export interface Surroundings {
  changed(): void;
  failed(error: unknown): void;
  /** Called when the cursor is on another entry. */
  selected(id: string): void;
}

/** The kinds of parts of which an entry can have many. */
export type PartKind = 'tools' | 'thinking';

export class Session {
  readonly tree: Tree;
  readonly bodies: Bodies;
  path: Path | undefined;
  /** The parts that the reader has opened (true) or closed (false). */
  readonly opened = new Map<string, boolean>();
  /** The kinds of parts that the reader has opened or closed all at once. */
  private readonly all = new Map<PartKind, boolean>();
  /** The last measured heights of entries, by their ids. */
  readonly heights = new Map<string, number>();
  compared: Comparison | undefined;
  comparing = false;
  /** Increases with each request to show the end of the path. */
  shows = 0;
  /** Whether the next path is shown from its beginning. */
  fromBeginning = false;
  private pathWanted: string | undefined;
  private pathLoading = false;

  constructor(
    readonly source: Source,
    private readonly around: Surroundings,
  ) {
    const failed = (error: unknown) => this.around.failed(error);
    const changed = () => this.around.changed();
    this.tree = new Tree(source, changed, (id) => this.show(id), failed);
    this.bodies = new Bodies(source, changed, failed);
  }

  /** Shows the path to an entry. */
  show(id: string): void {
    this.around.selected(id);
    this.pathWanted = id;
    if (!this.pathLoading) void this.loadPath();
  }

  /** Reads the path again, since labels and results in it may be new. */
  refreshPath(): void {
    const id = this.path?.id;
    if (id === undefined) return;
    const shows = this.shows;
    const show = (path: Path | undefined): void => {
      if (!path || this.path?.id !== id || this.shows !== shows) return;
      this.path = path;
      this.around.changed();
    };
    this.source.path(id).then(show, (error: unknown) => this.around.failed(error));
  }

  private async loadPath(): Promise<void> {
    this.pathLoading = true;
    try {
      while (this.pathWanted !== undefined) {
        const id = this.pathWanted;
        this.pathWanted = undefined;
        const path = await this.source.path(id);
        if (path) {
          this.path = path;
          this.shows++;
          this.readShort(path);
        }
        this.around.changed();
      }
    } catch (error) {
      this.around.failed(error);
    } finally {
      this.pathLoading = false;
    }
  }

  /** Reads all bodies of a short path, so that they can be printed. */
  private readShort(path: Path): void {
    if (path.length > SHORT) return;
    for (let at = path.length - 1; at >= 0; at--) {
      const row = path.entry(at);
      if (row && shape(row) === 'full') this.bodies.get(row.id);
    }
  }

  isOpen(key: string, initially: boolean): boolean {
    return this.opened.get(key) ?? initially;
  }

  /** Whether a part of this kind is open: by the reader's choice for this part, or for all parts of the kind. */
  isPartOpen(kind: PartKind, place: string, initially: boolean): boolean {
    return this.isOpen(`${kind} ${place}`, this.all.get(kind) ?? initially);
  }

  togglePart(kind: PartKind, place: string, open: boolean): void {
    this.toggle(`${kind} ${place}`, open);
  }

  /** Opens all parts of a kind, or closes them all. */
  toggleAll(kind: PartKind): void {
    this.all.set(kind, this.all.get(kind) !== true);
    for (const key of this.opened.keys()) if (key.startsWith(`${kind} `)) this.opened.delete(key);
    this.around.changed();
  }

  toggle(key: string, open: boolean): void {
    this.opened.set(key, open);
    this.around.changed();
  }

  /**
   * Compares the two marked entries, or the one marked entry with the selected one, or the selected one with the
   * leaf.
   */
  async compare(): Promise<void> {
    const { marks, cursorId } = this.tree;
    const [a, b] = marks.length === 2 ? marks : [marks[0] ?? this.source.leafId(), cursorId];
    if (a === undefined || b === undefined || a === b) {
      throw new Error('Mark two entries with M, or mark one and select another.');
    }
    this.comparing = true;
    this.around.changed();
    try {
      this.compared = await this.source.compare(a, b);
    } finally {
      this.comparing = false;
      this.around.changed();
    }
  }
}

/** How an entry of a path is shown: in full, as one line, or not at all. */
export function shape(row: Row): 'full' | 'line' | 'none' {
  switch (row.type) {
    case 'message':
      // A result is shown together with its call.
      return row.role === 'toolResult' && row.toolCall ? 'none' : 'full';
    case 'model_change':
    case 'thinking_level_change':
    case 'mode_change':
    case 'context_edit':
      return 'line';
    case 'label':
    case 'session_info':
    case 'usage':
    case 'custom':
      return 'none';
    default:
      return 'full';
  }
}
