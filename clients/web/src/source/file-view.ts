/** What a filter shows of a page file, whole and with the left branches folded. */

/** The rows that a filter shows, in parallel arrays. */
export interface FileView {
  hidden: number;
  rows: number[];
  depth: number[];
  indent: number[];
  prefix: number[];
  prefixes: string[];
}

/** The branches that a row of a view stands for, or why it is not folded. */
export interface Line {
  /** The first rows of the folded branches, in the view that was folded. */
  heads?: number[];
  branches?: number;
  entries?: number;
  expand?: string[];
  each?: string[];
}

export interface LeftView extends FileView {
  lines: ReadonlyMap<number, Line>;
  /** By the number of a row that is shown or folded, its index in this view. */
  places: ReadonlyMap<number, number>;
  /** The view that was folded, and how many rows each branch has in it. */
  whole: FileView;
  sizes: Uint32Array;
}
