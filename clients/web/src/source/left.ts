/**
 * Folds the branches that were left, in the same way as the daemon (protocol.md §6.8): the path to the leaf is not
 * indented, and each fork has one row for the branches that were left there.
 */

import type { FileRows } from './file-rows.ts';
import type { FileView, LeftView, Line } from './file-view.ts';
import type { Folds } from './source.ts';

/** A row to be shown, with its guides. */
interface Next {
  at: number;
  indent: number;
  guides: string;
  below: string;
  line?: Line;
}

/** Folds a view whose order is `active-first`. `leaf` is the number of the leaf's row, or −1. */
export function leftView(view: FileView, leaf: number, rows: FileRows, folds: Folds): LeftView {
  const tree = treeOf(view);
  const active = activeOf(view, tree.parents, leaf);
  const asked = askedOf(view, tree.parents, rows, folds);
  const shown: LeftView & { lines: Map<number, Line>; places: Map<number, number> } = {
    ...{ hidden: view.hidden, rows: [], depth: [], indent: [], prefix: [], prefixes: [] },
    ...{ lines: new Map(), places: new Map(), whole: view, sizes: tree.sizes },
  };
  const known = new Guides(shown.prefixes);
  /** The rows below a row, the last one first. */
  const below = (fork: number, indent: number, guides: string): Next[] => {
    const children = tree.children.get(fork) ?? [];
    const on = children.find((at) => active.has(at));
    const goesOn = on ?? (fork >= 0 && active.has(fork) ? undefined : children.at(-1));
    const lines = linesOf(
      children.filter((at) => at !== goesOn),
      fork,
      tree.sizes,
      asked,
    );
    const next: Next[] = lines.map(({ at, line }, place) => {
      const isLast = place === lines.length - 1;
      const [arm, rest] = isLast ? ['└─ ', '   '] : ['├─ ', '│  '];
      return { at, line, indent: indent + 1, guides: guides + arm, below: guides + rest };
    });
    if (goesOn !== undefined) next.push({ at: goesOn, indent, guides, below: guides });
    return next.reverse();
  };
  const open = below(-1, 0, '');
  for (let next = open.pop(); next; next = open.pop()) {
    const { at, line } = next;
    const place = shown.rows.length;
    shown.rows.push(view.rows[at] ?? -1);
    shown.depth.push(view.depth[at] ?? 0);
    shown.indent.push(next.indent);
    shown.prefix.push(known.number(next.guides));
    if (line) shown.lines.set(place, line);
    if (!line?.heads) {
      shown.places.set(view.rows[at] ?? -1, place);
      open.push(...below(at, next.indent, next.below));
      continue;
    }
    for (const head of line.heads) {
      const end = head + (tree.sizes[head] ?? 1);
      for (let inside = head; inside < end; inside++)
        shown.places.set(view.rows[inside] ?? -1, place);
    }
  }
  return shown;
}

/** The guides of a view, each of them once. */
export class Guides {
  private readonly numbers = new Map<string, number>();

  constructor(private readonly texts: string[]) {}

  /** Returns the index of guides, which are added if they are new. */
  number(text: string): number {
    const known = this.numbers.get(text);
    if (known !== undefined) return known;
    this.numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }
}

interface Shape {
  parents: Int32Array;
  /** The children of each row; −1 has the roots. */
  children: Map<number, number[]>;
  sizes: Uint32Array;
}

export function treeOf(view: FileView): Shape {
  const count = view.rows.length;
  const shape = {
    parents: new Int32Array(count).fill(-1),
    children: new Map<number, number[]>(),
    sizes: new Uint32Array(count).fill(1),
  };
  const path: number[] = [];
  for (let at = 0; at < count; at++) {
    const depth = view.depth[at] ?? 0;
    path.length = depth;
    const parent = path[depth - 1] ?? -1;
    path.push(at);
    shape.parents[at] = parent;
    const siblings = shape.children.get(parent);
    if (siblings) siblings.push(at);
    else shape.children.set(parent, [at]);
  }
  for (let at = count - 1; at >= 0; at--) {
    const parent = shape.parents[at] ?? -1;
    if (parent >= 0) shape.sizes[parent] = (shape.sizes[parent] ?? 1) + (shape.sizes[at] ?? 1);
  }
  return shape;
}

export function activeOf(view: FileView, parents: Int32Array, leaf: number): Set<number> {
  const active = new Set<number>();
  for (let at = view.rows.indexOf(leaf); at >= 0; at = parents[at] ?? -1) active.add(at);
  return active;
}

interface Asked {
  /** The rows whose branch contains an entry of `expand`, each with the ids of these entries. */
  open: Map<number, string[]>;
  /** The forks whose branches have one row each (−1 for the roots), with the ids that request this. */
  each: Map<number, string[]>;
}

function askedOf(view: FileView, parents: Int32Array, rows: FileRows, folds: Folds): Asked {
  const places = new Map<number, number>();
  if (folds.expand.length + folds.each.length > 0)
    view.rows.forEach((number, at) => places.set(number, at));
  const placeOf = (id: string): number => places.get(rows.numbers.get(id) ?? -1) ?? -1;
  const asked: Asked = { open: new Map(), each: new Map() };
  const add = (map: Map<number, string[]>, at: number, id: string): void => {
    map.set(at, [...(map.get(at) ?? []), id]);
  };
  for (const id of folds.expand)
    for (let at = placeOf(id); at >= 0; at = parents[at] ?? -1) add(asked.open, at, id);
  for (const id of folds.each) {
    const at = placeOf(id);
    if (at >= 0) add(asked.each, parents[at] ?? -1, id);
  }
  return asked;
}

/** The rows that stand for the branches that were left at a fork. */
function linesOf(
  left: number[],
  fork: number,
  sizes: Uint32Array,
  asked: Asked,
): { at: number; line: Line }[] {
  const each = asked.each.get(fork);
  const lines: { at: number; line: Line }[] = [];
  let group: Line | undefined;
  for (const at of left) {
    const expand = asked.open.get(at);
    if (expand) {
      lines.push({ at, line: { expand, ...(each && { each }) } });
      continue;
    }
    const entries = sizes[at] ?? 1;
    if (group && !each) {
      group.heads?.push(at);
      group.branches = (group.branches ?? 0) + 1;
      group.entries = (group.entries ?? 0) + entries;
      continue;
    }
    group = { heads: [at], branches: 1, entries, ...(each && { each }) };
    lines.push({ at, line: group });
  }
  return lines;
}
