/** The tree. The daemon draws the rows, and only those in view are in the document. */

import { memo } from 'preact/compat';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Row } from '../wire.ts';
import type { App } from '../model/app.ts';
import { hint } from '../model/keys.ts';
import { headsBranch, type Reveal, type Tree } from '../model/tree.ts';
import type { Session } from '../model/session.ts';
import { marksOf, type Query } from '../text/query.ts';
import { visible } from '../text/visible.ts';
import { Guides, mostCells } from './guides.tsx';
import { Minimap } from './minimap.tsx';
import { ROW } from './sizes.ts';
import { bornText, hasWord, speakerOf, styleClass, toneOf } from './words.ts';

/** The number of rows above and below the view that are drawn too. */
const SPARE = 12;

/** Browsers do not lay out boxes that are taller than this, in pixels. */
const TALLEST = 15_000_000;

/** The state that was drawn last. */
interface Last {
  reveal: Reveal | undefined;
  cursor: number;
  top: number;
}

export function TreePane({ app, session }: { app: App; session: Session }) {
  const { tree } = session;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ width: 360, height: 600 });
  const last = useRef<Last>({ reveal: undefined, cursor: 0, top: 0 });
  const total = tree.view?.total ?? 0;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() =>
      setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    const { reveal } = tree;
    if (element && reveal && reveal !== last.current.reveal) {
      element.scrollTop = revealed(reveal.at, reveal.how, element, last.current);
      setTop(element.scrollTop);
    }
    last.current = { reveal, cursor: tree.cursor, top: element?.scrollTop ?? 0 };
  });

  // The rows at the new scroll position are drawn at once, without first drawing those at the old position.
  const moves = tree.reveal !== last.current.reveal ? tree.reveal : undefined;
  const view = box.current ?? { clientHeight: size.height, scrollTop: 0 };
  const target = moves ? revealed(moves.at, moves.how, view, last.current) : top;
  const start = Math.max(0, Math.min(target, total * ROW - size.height));
  const first = Math.max(0, Math.floor(start / ROW) - SPARE);
  const end = Math.min(total, Math.ceil((start + size.height) / ROW) + SPARE);
  tree.view?.want(first, end);
  const rows = [];
  const most = mostCells(size.width);
  for (let at = first; at < end; at++) {
    const row = tree.view?.row(at);
    rows.push(
      <TreeRow
        // The element stays with its entry, so that a click does not reach another row.
        key={row?.id ?? at}
        app={app}
        tree={tree}
        at={at}
        row={row}
        total={total}
        most={most}
        query={tree.query}
        selected={at === tree.cursor}
        marked={row !== undefined && tree.marks.includes(row.id)}
      />,
    );
  }
  const height = Math.min(total * ROW, TALLEST);
  return (
    <div class="tree-body">
      <div
        id="tree"
        ref={box}
        role="tree"
        tabIndex={0}
        aria-label="Entries of the session"
        aria-activedescendant={total > 0 ? `row-${tree.cursor}` : undefined}
        onScroll={(event) => {
          last.current.top = event.currentTarget.scrollTop;
          setTop(event.currentTarget.scrollTop);
        }}
      >
        <div class="rows" role="none" style={{ height: `${height}px` }}>
          {rows}
        </div>
        {total === 0 && tree.view && <p class="empty">{emptiness(tree)}</p>}
      </div>
      <Minimap
        tree={tree}
        top={top}
        height={size.height}
        scroll={(y) => scrollTo(box.current, y)}
      />
    </div>
  );
}

function scrollTo(element: HTMLElement | null, y: number): void {
  if (element) element.scrollTop = y;
}

function revealed(
  at: number,
  how: 'center' | 'nearest' | 'keep',
  element: Pick<HTMLElement, 'clientHeight' | 'scrollTop'>,
  last: Last,
): number {
  const y = at * ROW;
  const { clientHeight } = element;
  if (how === 'center') return y - clientHeight / 2 + ROW;
  if (how === 'keep') {
    const offset = last.cursor * ROW - last.top;
    if (offset >= 0 && offset < clientHeight) return y - offset;
    return last.top;
  }
  const top = element.scrollTop;
  if (y < top + ROW) return y - ROW;
  return y + 2 * ROW > top + clientHeight ? y + 2 * ROW - clientHeight : top;
}

function emptiness(tree: Tree): string {
  if (tree.query?.error) return `This is not a regular expression: ${tree.query.error}`;
  if (tree.query && tree.searching !== undefined) return 'No row has this. Searching the text…';
  if (tree.query) return 'Nothing was found.';
  return tree.filter === 'labeled-only' ? 'No entry has a label.' : 'Nothing to show.';
}

interface RowProps {
  app: App;
  tree: Tree;
  at: number;
  row: Row | undefined;
  total: number;
  /** The most cells that the guides have. */
  most: number;
  query: Query | undefined;
  selected: boolean;
  marked: boolean;
}

/**
 * A row. It is drawn again only if one of its properties changes, so most rows stay as they are while the tree
 * scrolls.
 */
const TreeRow = memo(({ app, tree, at, row, ...shown }: RowProps) => {
  const { selected, marked } = shown;
  const style = { transform: `translateY(${at * ROW}px)` };
  if (!row) return <div class="row waiting" role="none" style={style} />;
  const folded = row.folded !== undefined;
  const folds = folded || row.opened?.expand !== undefined;
  const classes = [
    'row',
    folded ? 'quiet' : toneOf(row),
    row.onActivePath ? 'on-path' : '',
    selected ? 'selected' : '',
    row.isError ? 'failed' : '',
    marked ? 'marked' : '',
    row.archived === true ? 'archived' : '',
  ];
  const select = (): void => {
    app.drawer = false;
    void tree.pick(row, at);
  };
  return (
    <div
      class={classes.filter(Boolean).join(' ') + styleClass(row)}
      role="treeitem"
      id={`row-${at}`}
      aria-level={row.depth + 1}
      aria-selected={selected}
      aria-posinset={at + 1}
      aria-setsize={shown.total}
      {...(folds ? { 'aria-expanded': !folded } : {})}
      style={style}
      onClick={select}
      onDblClick={() => {
        if (tree.row()?.id === row.id) app.act(folded ? 'toggle-fold' : 'accept');
      }}
    >
      <i class="dot" aria-hidden="true" />
      <RowLine
        row={row}
        query={shown.query}
        marked={marked}
        most={shown.most}
        toggle={() => tree.toggleRow(row)}
      />
    </div>
  );
});

interface LineProps {
  row: Row;
  query: Query | undefined;
  marked: boolean;
  /** The most cells that the guides have. */
  most: number;
  /** Opens or closes the branch of the row. */
  toggle: () => void;
}

/** What a row shows, in the order of all clients (protocol.md §6.9). Styles are in place of some words and of brackets. */
export function RowLine({ row, query, marked, most, toggle }: LineProps) {
  const folded = row.folded !== undefined;
  const hasLead = hasWord(row);
  // The preview of a call says that it failed.
  const failed = row.isError === true && row.toolCall === undefined;
  return (
    <>
      <Guides prefix={row.prefix} indent={row.indent} most={most} />
      {(folded || row.opened?.expand !== undefined) && (
        <i
          class={`fold ${folded ? 'closed' : ''}`}
          aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            toggle();
          }}
        />
      )}
      {marked && <span class="sr">marked </span>}
      {folded && <span class="sr">folded: </span>}
      {!folded && <span class={hasLead ? 'lead' : 'lead sr'}>{speakerOf(row)}</span>}
      {row.branchName !== undefined && !folded && (
        <span class="branch-name">{visible(row.branchName)} ·</span>
      )}
      {row.sessions && (
        <span class="born" title={`Sessions that come from here: ${hint('family')}`}>
          ↗ {bornText(row.sessions)} ·
        </span>
      )}
      {row.label !== undefined && <span class="label">{visible(row.label)}</span>}
      <span class="text" dir="auto">
        {failed && '✗ '}
        {row.icon !== undefined && !row.match && `${visible(row.icon)} `}
        {row.tokens !== undefined && !row.match && `${row.tokens} tokens before: `}
        {row.match ? <Found row={row} /> : <Marked text={visible(row.preview)} query={query} />}
      </span>
      {row.flags?.map((flag) => (
        <span class="flag">{visible(flag)}</span>
      ))}
      {row.archived === true && headsBranch(row) && <span class="away">archived</span>}
      {row.isLeaf && <span class="leaf">active</span>}
    </>
  );
}

/** The part of an entry that matches the search. The ranges of the daemon count code points. */
function Found({ row }: { row: Row }) {
  const chars = Array.from(row.match?.snippet ?? '');
  const parts = [];
  let end = 0;
  for (const [from, to] of row.match?.ranges ?? []) {
    parts.push(visible(chars.slice(end, from).join('')));
    parts.push(<mark>{visible(chars.slice(from, to).join(''))}</mark>);
    end = to;
  }
  parts.push(visible(chars.slice(end).join('')));
  return <>{parts}</>;
}

function Marked({ text, query }: { text: string; query: Query | undefined }) {
  const marks = marksOf(query, text, 16);
  if (marks.length === 0) return <>{text}</>;
  const parts = [];
  let end = 0;
  for (const [from, to] of marks) {
    parts.push(text.slice(end, from));
    parts.push(<mark>{text.slice(from, to)}</mark>);
    end = to;
  }
  parts.push(text.slice(end));
  return <>{parts}</>;
}
