/**
 * Puts the rows of a page file in the order in which clients draw them where no branch is folded: the children of an
 * entry by their times. The file has the active path first, so that what is read first lies together (FORMAT.md, section 4).
 */

import type { FileRows } from './file-rows.ts';
import type { FileView } from './file-view.ts';
import { activeOf, Guides, treeOf } from './left.ts';

/** A row to be shown, with its guides. */
interface Next {
  at: number;
  indent: number;
  guides: string;
  below: string;
}

/** Orders a view whose order is `active-first`; `leaf` is the number of the leaf's row, or −1. Every row has been read. */
export function inTime(view: FileView, leaf: number, rows: FileRows): FileView {
  const { parents, children } = treeOf(view);
  const active = activeOf(view, parents, leaf);
  if (active.size === 0) return view;
  const timeOf = (at: number): number => rows.time(view.rows[at] ?? -1);
  /** The children of a row: only the one on the active path is not where its time puts it. */
  const ordered = (fork: number): number[] => {
    const all = children.get(fork) ?? [];
    const [first = -1, ...others] = all;
    if (others.length === 0 || !active.has(first)) return all;
    const later = others.findIndex((at) => timeOf(at) > timeOf(first));
    others.splice(later < 0 ? others.length : later, 0, first);
    return others;
  };
  const shown: FileView = {
    hidden: view.hidden,
    rows: [],
    depth: [],
    indent: [],
    prefix: [],
    prefixes: [],
  };
  const known = new Guides(shown.prefixes);
  /** The rows below a row, the last one first. */
  const below = (fork: number, indent: number, guides: string): Next[] => {
    const all = ordered(fork);
    if (all.length < 2) return all.map((at) => ({ at, indent, guides, below: guides }));
    const next = all.map((at, place) => {
      const isLast = place === all.length - 1;
      const [arm, rest] = isLast ? ['└─ ', '   '] : ['├─ ', '│  '];
      return { at, indent: indent + 1, guides: guides + arm, below: guides + rest };
    });
    return next.reverse();
  };
  const open = below(-1, 0, '');
  for (let next = open.pop(); next; next = open.pop()) {
    shown.rows.push(view.rows[next.at] ?? -1);
    shown.depth.push(view.depth[next.at] ?? 0);
    shown.indent.push(next.indent);
    shown.prefix.push(known.number(next.guides));
    open.push(...below(next.at, next.indent, next.below));
  }
  return shown;
}
