/** The rows of a page file that a filter shows, with all branches, and with the left branches folded. */

/** The rows that a filter shows. The arrays have one element for each row. */
export interface FileView {
  hidden: number;
  rows: number[];
  depth: number[];
  indent: number[];
  prefix: number[];
  prefixes: string[];
}

/** The branches that a folded row stands for, or why a row is not folded. */
export interface Line {
  /** The first rows of the folded branches, as indexes in the unfolded view. */
  heads?: number[];
  branches?: number;
  entries?: number;
  expand?: string[];
  each?: string[];
}

export interface LeftView extends FileView {
  lines: ReadonlyMap<number, Line>;
  /** The index in this view of each row of the unfolded view that is shown or folded. */
  places: ReadonlyMap<number, number>;
  /** The unfolded view, and the number of rows of each branch in it. */
  whole: FileView;
  sizes: Uint32Array;
}
