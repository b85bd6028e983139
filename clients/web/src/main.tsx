/** Starts the page, with the session in this file or with the daemon that serves the page. */

import { render } from 'preact';
import { App } from './model/app.ts';
import { Live } from './model/live.ts';
import { DocumentChunks } from './source/chunks.ts';
import { FileSource } from './source/file.ts';
import { Page } from './view/page.tsx';
import { restoreWidth } from './view/divider.tsx';

const root = document.getElementById('app');
const app: App = new App(() => {
  if (root) render(<Page app={app} />, root);
});

/** Whether a key is typed into a field. */
function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, dialog') !== null;
}

/** Whether the focused control or the text uses this key itself. */
function isOwn(event: KeyboardEvent): boolean {
  const { target } = event;
  if (!(target instanceof Element)) return false;
  if (target.closest('button, a, summary') && ['Enter', ' ', 'Tab'].includes(event.key))
    return true;
  if (event.key === 'Tab') return true;
  const moves = [
    'ArrowUp',
    'ArrowDown',
    'ArrowLeft',
    'ArrowRight',
    'PageUp',
    'PageDown',
    'Home',
    'End',
    ' ',
  ];
  const inText = target.closest('#path, #compare') !== null;
  return inText && (moves.includes(event.key) || (event.ctrlKey && event.key !== 'q'));
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || isField(event.target) || isOwn(event)) return;
  if (event.key === 'Escape' && event.target instanceof Element && event.target.closest('#path')) {
    document.querySelector<HTMLElement>('#tree')?.focus();
    event.preventDefault();
    return;
  }
  if (app.key(event)) event.preventDefault();
}

async function openFile(chunks: DocumentChunks): Promise<void> {
  const source = await FileSource.open(chunks, { loaded: app.changed });
  app.file = source;
  app.open(source);
  await app.start();
  document.getElementById('static')?.remove();
  document.querySelector<HTMLElement>('#tree')?.focus({ preventScroll: true });
  await source.prefetch();
}

async function start(): Promise<void> {
  restoreWidth();
  document.addEventListener('keydown', onKey);
  window.addEventListener('hashchange', () => void app.followRoute());
  const chunks = new DocumentChunks();
  if (chunks.has('meta')) await openFile(chunks);
  else {
    app.live = new Live(app);
    await app.live.start();
  }
}

start().catch((error: unknown) => {
  app.failed(error);
});
