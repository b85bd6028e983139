/** The minimap of the whole tree: the indent of each row, the active path, labels, and the part in view. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Tree } from '../model/tree.ts';
import { MARK, type Overview } from '../source/source.ts';
import { ROW } from './sizes.ts';

const WIDTH = 44;

interface Props {
  tree: Tree;
  top: number;
  height: number;
  scroll: (y: number) => void;
}

export function Minimap({ tree, top, height, scroll }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<unknown>(undefined);
  const total = tree.view?.total ?? 0;
  const overview = tree.view?.overview();
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;

  useLayoutEffect(() => {
    const element = canvas.current;
    const key = `${height} ${dark} ${total}`;
    if (!element || !overview) return;
    const state = [overview, key] as const;
    const before = drawn.current as typeof state | undefined;
    if (before?.[0] === overview && before[1] === key) return;
    drawn.current = state;
    drawOverview(element, overview, total, height);
  });

  const scale = Math.min(1, height / Math.max(1, total * 3));
  const drag = (event: PointerEvent): void => {
    if (event.buttons === 0) return;
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    scroll(((event.clientY - box.top) / (3 * scale)) * ROW - height / 2);
  };
  const view = {
    transform: `translateY(${(top / ROW) * 3 * scale}px)`,
    height: `${Math.max(8, (height / ROW) * 3 * scale)}px`,
  };
  return (
    <div class="minimap" aria-hidden="true" onPointerDown={drag} onPointerMove={drag}>
      <canvas ref={canvas} />
      {total * ROW > height && <div class="minimap-view" style={view} />}
    </div>
  );
}

function drawOverview(
  canvas: HTMLCanvasElement,
  overview: Overview,
  total: number,
  height: number,
): void {
  const ratio = devicePixelRatio || 1;
  const pixels = Math.min(height, total * 3);
  canvas.width = WIDTH * ratio;
  canvas.height = Math.max(1, pixels * ratio);
  canvas.style.width = `${WIDTH}px`;
  canvas.style.height = `${pixels}px`;
  const context = canvas.getContext('2d');
  if (!context || total === 0) return;
  const colours = getComputedStyle(canvas);
  const colour = (name: string): string => colours.getPropertyValue(name).trim();
  const [active, quiet, label, user] = ['--accent', '--line-strong', '--label', '--user'].map(
    colour,
  );
  context.scale(ratio, ratio);
  let deepest = 1;
  for (const indent of overview.indent) if (indent !== 65535 && indent > deepest) deepest = indent;
  const step = Math.min(4, (WIDTH - 20) / deepest);
  const lines = Math.min(total, Math.max(1, Math.floor(pixels)));
  // If a line stands for more rows, nearly every line has a user message.
  const sparse = total <= 4 * lines;
  for (let line = 0; line < lines; line++) {
    const y = (line / lines) * pixels;
    const from = Math.floor((line / lines) * total);
    const to = Math.max(from + 1, Math.floor(((line + 1) / lines) * total));
    let [indent, marks] = [65535, 0];
    for (let at = from; at < to; at++) {
      indent = Math.min(indent, overview.indent[at] ?? 65535);
      marks |= overview.marks[at] ?? 0;
    }
    if (indent === 65535) continue;
    const x = 3 + indent * step;
    const isUser = sparse && (marks & MARK.user) !== 0;
    const long = isUser ? 16 : 9;
    context.fillStyle = (isUser ? user : marks & MARK.active ? active : quiet) ?? '';
    context.fillRect(x, y, Math.min(long, WIDTH - 6 - x), Math.max(1, pixels / lines - 1));
    if (marks & MARK.label) {
      context.fillStyle = label ?? '';
      context.fillRect(WIDTH - 6, y, 4, Math.max(2, pixels / lines - 1));
    }
  }
}
