/** Compares branches and sums their statistics, from the element `stats` of a page file (FORMAT.md, `stats`). */

import type { Block, Comparison, ComparedBranch, Costs, Files, Stats, Tokens } from '../wire.ts';
import type { FileRows } from './file-rows.ts';

/** The element `stats` of a page file: totals, and the usage and files of each row. Older files have only `total`. */
export interface FileStats {
  total: Stats;
  usage?: {
    rows: number[];
    input: number[];
    output: number[];
    cacheRead: number[];
    cacheWrite: number[];
    cost: number[];
    /** Absent in older files. */
    estimated?: (number | null)[];
  };
  files?: { paths: string[]; read: [number, number][]; modified: [number, number][] };
}

export function compareInFile(rows: FileRows, stats: FileStats, a: string, b: string): Comparison {
  const first = rows.path(rows.numbers.get(a) ?? -1);
  const second = rows.path(rows.numbers.get(b) ?? -1);
  let shared = 0;
  while (shared < first.length && first[shared] === second[shared]) shared++;
  const ancestor = shared > 0 ? rows.rows[first[shared - 1] ?? -1] : undefined;
  return {
    ancestorId: ancestor?.id ?? null,
    a: side(rows, stats, first.slice(shared)),
    b: side(rows, stats, second.slice(shared)),
  };
}

function side(rows: FileRows, stats: FileStats, path: number[]): ComparedBranch {
  return {
    entryIds: path.map((at) => rows.rows[at]?.id ?? ''),
    files: filesOf(stats, new Set(path)),
    stats: sumRows(rows, stats, path),
  };
}

function filesOf(stats: FileStats, path: ReadonlySet<number>): Files {
  const names = (pairs: [number, number][]) =>
    new Set(
      pairs.filter(([row]) => path.has(row)).map(([, name]) => stats.files?.paths[name] ?? ''),
    );
  const modified = names(stats.files?.modified ?? []);
  const read = [...names(stats.files?.read ?? [])].filter((name) => !modified.has(name));
  return { readFiles: read.sort(), modifiedFiles: [...modified].sort() };
}

/** A longer pause between entries does not count as time spent, in milliseconds. */
const PAUSE = 10 * 60_000;

export function sumRows(rows: FileRows, stats: FileStats, path: number[]): Stats {
  const messages = new Map<string, number>();
  let activeMs = 0;
  let previous: number | undefined;
  for (const at of path) {
    const row = rows.rows[at];
    if (row?.type === 'message' && row.role !== undefined) {
      messages.set(row.role, (messages.get(row.role) ?? 0) + 1);
    }
    const time = rows.time(at);
    if (Number.isNaN(time)) continue;
    const passed = time - (previous ?? time);
    if (passed > 0 && passed <= PAUSE) activeMs += passed;
    previous = time;
  }
  return { messages: Object.fromEntries(messages), activeMs, ...usageOf(rows, stats, path) };
}

/** For each row, its index in the arrays of `usage`; −1 if the row used no model. */
const usageIndexes = new WeakMap<FileStats, Int32Array>();

function usageIndexesOf(stats: FileStats, usage: { rows: number[] }, count: number): Int32Array {
  const known = usageIndexes.get(stats);
  if (known) return known;
  const made = new Int32Array(count).fill(-1);
  usage.rows.forEach((row, at) => {
    made[row] = at;
  });
  usageIndexes.set(stats, made);
  return made;
}

function usageOf(
  rows: FileRows,
  stats: FileStats,
  path: number[],
): { tokens?: Tokens; cost?: number; costs?: Costs } {
  const usage = stats.usage;
  if (!usage) return {};
  const known = usageIndexesOf(stats, usage, rows.count);
  const tokens: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  let cost = 0;
  const costs: Costs = { recorded: null, estimated: null, unknownAnswers: 0 };
  for (const row of path) {
    const at = known[row] ?? -1;
    if (at < 0) continue;
    tokens.input += usage.input[at] ?? 0;
    tokens.output += usage.output[at] ?? 0;
    tokens.cacheRead += usage.cacheRead[at] ?? 0;
    tokens.cacheWrite += usage.cacheWrite[at] ?? 0;
    const recorded = usage.cost[at] ?? 0;
    const estimated = usage.estimated?.[at] ?? null;
    cost += recorded;
    if (recorded > 0) costs.recorded = (costs.recorded ?? 0) + recorded;
    else if (estimated !== null) costs.estimated = (costs.estimated ?? 0) + estimated;
    // A row without tokens and without cost is not in the arrays.
    else costs.unknownAnswers++;
  }
  return usage.estimated ? { tokens, cost, costs } : { tokens, cost };
}

/** The files that tool calls change: the path of each diff in a call, or the call's argument if it has no diff. */
export function changedFiles(blocks: Block[]): string[] {
  const names = new Set<string>();
  for (const block of blocks) {
    if (block.kind !== 'toolCall') continue;
    for (const inner of block.blocks ?? []) {
      const name = inner.kind === 'diff' ? (inner.path ?? block.argument) : block.argument;
      if (name !== undefined) names.add(name);
    }
  }
  return [...names].sort();
}
