/** The path to the selected entry. Only the entries in view are in the document. */

import { flushSync, memo } from 'preact/compat';
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import type { App } from '../model/app.ts';
import { shape, type Session } from '../model/session.ts';
import type { Row } from '../wire.ts';
import type { Path } from '../source/source.ts';
import { Heights } from '../text/heights.ts';
import { EntryView } from './entry.tsx';
import { markTexts } from './found.ts';

/** The height above and below the view in which entries are drawn too, in pixels. */
const SPARE = 600;

const ESTIMATE = 110;

/** The most entries that are printed. They are the last ones of the path. */
const PRINTED = 2000;

/** For this number of entries at the end, the heights on the previous path are used again. */
const REMEMBERED = 400;

class Column {
  heights = new Heights(0, ESTIMATE);
  path: Path | undefined;
  shows = 0;
  /** Whether all entries are drawn, because the page is being printed. */
  printing = false;
  /** Whether the view stays at the end of the path, until the reader scrolls. */
  pinned = true;

  take(path: Path, known: ReadonlyMap<string, number>): void {
    this.path = path;
    this.heights = new Heights(path.length, ESTIMATE);
    for (let at = Math.max(0, path.length - REMEMBERED); at < path.length; at++) {
      const row = path.entry(at);
      const height = row && shape(row) === 'none' ? 0 : row && known.get(row.id);
      if (height !== undefined) this.heights.set(at, height);
    }
  }

  /** The index of the last entry that is shown in full. */
  last(): number {
    for (let at = (this.path?.length ?? 0) - 1; at >= 0; at--) {
      const row = this.path?.entry(at);
      if (!row || shape(row) === 'full') return at;
    }
    return 0;
  }

  /** The scroll position for the selected entry: its end, or its start if it does not fit into the view. */
  target(view: number): number {
    const last = this.last();
    const [top, height] = [this.heights.offset(last), this.heights.height(last)];
    return height > view - 80 ? top - 16 : this.heights.total() - view + 48;
  }

  /** The indexes of the entries in view. The heights of hidden ones are set to 0. */
  visible(top: number, view: number): number[] {
    const shown: number[] = [];
    const { path, heights } = this;
    if (!path || path.length === 0) return shown;
    const first = this.printing
      ? Math.max(0, path.length - PRINTED)
      : heights.at(Math.max(0, top - SPARE));
    let y = heights.offset(first);
    for (let at = first; at < path.length && (this.printing || y < top + view + SPARE); at++) {
      const row = path.entry(at);
      if (row && shape(row) === 'none') {
        heights.set(at, 0);
        continue;
      }
      shown.push(at);
      y += heights.height(at);
    }
    path.want(first, (shown.at(-1) ?? first) + 1);
    return shown;
  }
}

export function PathPane({ app, session }: { app: App; session: Session }) {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef(new Column()).current;
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const { path } = session;
  const observer = useMemo(
    () =>
      new ResizeObserver((changes) => {
        if (box.current && measure(column, session, changes, box.current)) redraw(undefined);
      }),
    [session],
  );
  if (path && path !== column.path) column.take(path, session.heights);
  if (column.shows !== session.shows) {
    column.shows = session.shows;
    column.pinned = !session.fromBeginning;
    session.fromBeginning = false;
  }

  useEffect(() => {
    const print = (event: Event): void => {
      column.printing = event.type === 'beforeprint';
      flushSync(() => redraw(undefined));
    };
    addEventListener('beforeprint', print);
    addEventListener('afterprint', print);
    return () => {
      removeEventListener('beforeprint', print);
      removeEventListener('afterprint', print);
    };
  }, []);

  useLayoutEffect(() => {
    const shown = box.current;
    if (shown) observer.observe(shown);
    return () => observer.disconnect();
  }, [observer]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (column.pinned) {
      const before = element.scrollTop;
      element.scrollTop = column.target(element.clientHeight);
      if (Math.abs(element.scrollTop - before) > SPARE / 2) redraw(undefined);
    }
  });

  const top = box.current?.scrollTop ?? 0;
  const view = box.current?.clientHeight ?? 800;
  const start = column.pinned ? column.target(view) : top;
  const shown = column.visible(start, view);
  const marksOf = `${app.drawn} ${shown.join()} ${column.heights.total()}`;
  useLayoutEffect(() => {
    if (box.current) markTexts(box.current, session.tree.query);
  }, [session.tree.query, marksOf]);
  const unpin = (): void => {
    column.pinned = false;
  };
  return (
    <div
      id="path"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="The conversation up to the selected entry"
      onScroll={() => redraw(undefined)}
      onWheel={unpin}
      onTouchMove={unpin}
      onPointerDown={unpin}
      onKeyDown={unpin}
    >
      <div class="column" style={{ height: `${column.heights.total() + 32}px` }}>
        {shown.map((at) => (
          <Place
            key={path?.entry(at)?.id ?? at}
            app={app}
            session={session}
            observer={observer}
            row={path?.entry(at)}
            previous={path?.entry(at - 1)}
            at={at}
            y={column.heights.offset(at) + 16}
            drawn={app.drawn}
          />
        ))}
      </div>
    </div>
  );
}

function measure(
  column: Column,
  session: Session,
  changes: ResizeObserverEntry[],
  box: HTMLElement,
): boolean {
  let [changed, above] = [false, 0];
  const anchor = column.heights.at(box.scrollTop);
  for (const change of changes) {
    const element = change.target as HTMLElement;
    if (element === box) {
      changed = true;
      continue;
    }
    if (!element.isConnected) continue;
    const at = Number(element.dataset.at);
    const row = column.path?.entry(at);
    const height = element.offsetHeight;
    if (!row || height === 0 || element.dataset.id !== row.id) continue;
    const change_ = column.heights.set(at, height);
    session.heights.set(row.id, height);
    if (change_ === 0) continue;
    changed = true;
    if (at < anchor) above += change_;
  }
  if (above !== 0 && !column.pinned) box.scrollTop += above;
  return changed;
}

interface PlaceProps {
  app: App;
  session: Session;
  observer: ResizeObserver;
  row: Row | undefined;
  previous: Row | undefined;
  at: number;
  /** The height above the entry, in pixels. */
  y: number;
  /** Changes whenever the page must be drawn again. */
  drawn: number;
}

/** The box of an entry. While the reader scrolls, only boxes that come into view are drawn. */
const Place = memo(({ app, session, observer, row, previous, at, y }: PlaceProps) => {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    observer.observe(element);
    return () => observer.unobserve(element);
  }, [observer]);
  const style = { transform: `translateY(${y}px)` };
  return (
    <div class="place" ref={box} style={style} data-at={at} data-id={row?.id}>
      {row && <EntryView app={app} session={session} row={row} previous={previous} />}
    </div>
  );
});
