/** The line between the tree and the text. The person can move it. */

import { useState } from 'preact/hooks';

const KEY = 'treelined.width';

function stored(): number | undefined {
  try {
    const width = Number(localStorage.getItem(KEY));
    return width >= 200 ? width : undefined;
  } catch {
    // A browser may refuse storage to a file.
    return undefined;
  }
}

function apply(width: number): void {
  const most = Math.max(240, innerWidth - 360);
  document.documentElement.style.setProperty('--tree', `${Math.max(220, Math.min(most, width))}px`);
}

export function restoreWidth(): void {
  const width = stored();
  if (width !== undefined) apply(width);
}

export function Divider() {
  const [dragging, setDragging] = useState(false);
  const move = (width: number): void => {
    apply(width);
    try {
      localStorage.setItem(KEY, String(Math.round(width)));
    } catch {
      // Without storage the width is kept only until the page is closed.
    }
  };
  return (
    <div
      class={`divider ${dragging ? 'dragging' : ''}`}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDragging(true);
      }}
      onPointerMove={(event) => {
        if (dragging) move(event.clientX);
      }}
      onPointerUp={() => setDragging(false)}
    />
  );
}
