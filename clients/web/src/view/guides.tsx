/** The lines of the tree. They are drawn from the prefix of each row, which the daemon makes. */

import { GUIDE } from './sizes.ts';

const CELLS = new Map([
  ['│', 'down'],
  ['├', 'fork'],
  ['└', 'end'],
]);

/** The least width of guides, in cells: one level after the number of the missing levels. */
const LEAST = 3;

/** The most cells of the guides in a pane. They take at most 12 of 80 columns. */
export function mostCells(width: number): number {
  return Math.max(LEAST, Math.floor((width * 12) / 80 / GUIDE));
}

/** The kinds of cells in a prefix. Each cell has three characters, and so has the number of missing levels; 100 takes six. */
export function cellsOf(prefix: string): string[] {
  const cells: string[] = [];
  const chars = Array.from(prefix);
  const number = /^…\d+/u.exec(prefix)?.[0].length ?? 0;
  for (let at = Math.ceil(number / 3) * 3; at < chars.length; at += 3)
    cells.push(CELLS.get(chars[at] ?? '') ?? 'none');
  return cells;
}

export interface Drawn {
  cells: string[];
  /** The number of levels that are missing at the left, and the number of cells that this number takes. */
  missing: number;
  numbered: number;
}

/** The guides of a row in at most `most` cells. Levels are cut at the left, and replaced by their number. */
export function drawnOf(prefix: string, indent: number, most: number): Drawn {
  const cells = cellsOf(prefix);
  if (indent <= cells.length && cells.length <= most) return { cells, missing: 0, numbered: 0 };
  // Two digits fit beside the dots in two cells.
  const numbered = indent < 100 ? 2 : 3;
  const kept = cells.slice(-Math.max(1, most - numbered));
  return { cells: kept, missing: indent - kept.length, numbered };
}

export function Guides(props: { prefix: string; indent: number; most: number }) {
  if (props.prefix === '') return null;
  const { cells, missing, numbered } = drawnOf(props.prefix, props.indent, props.most);
  return (
    <span class="guides" aria-hidden="true">
      {missing > 0 && (
        <i class="guide cut" style={{ width: `${numbered * GUIDE}px` }}>{`…${missing}`}</i>
      )}
      {cells.map((kind) => (
        <i class={`guide ${kind}`} />
      ))}
    </span>
  );
}
