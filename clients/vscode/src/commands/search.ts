// The command that searches all sessions.

import type { SearchHit, SessionSearchMode } from 'treelined';
import * as vscode from 'vscode';
import {
  type Found,
  hitLook,
  MODES,
  moreLook,
  nextMode,
  type Query,
  search,
} from '../core/search.js';
import { folders } from '../settings.js';
import type { Parts } from './parts.js';

/** The pause in typing after which all sessions are searched, in milliseconds. */
const PAUSE_MS = 150;

/** An item: a hit, the other hits of a session, a query to continue with, or a note without effect. */
type Pick = vscode.QuickPickItem & {
  hit?: SearchHit;
  sessionId?: string;
  query?: string;
};

export function searchCommands({ app, tree }: Parts) {
  const find = async (mode: SessionSearchMode) => {
    const hit = await pickHit(app, mode);
    if (hit === undefined) return;
    await app.open({ sessionId: hit.sessionId });
    await tree.reveal(hit.entryId);
  };
  return {
    'treelined.search': () => find('ask'),
    'treelined.searchExactly': () => find('words'),
  };
}

/** The items for a result: a note, the hits, items for more hits of their sessions, and then filters. */
function picksOf({ hits, more, completions, note }: Found): Pick[] {
  const always = { alwaysShow: true };
  const names = new Map(hits.map(({ sessionId, sessionName }) => [sessionId, sessionName]));
  const picks: Pick[] = [
    ...(note ? [{ label: `$(info) ${note}`, ...always }] : []),
    ...hits.map((hit) => ({ ...hitLook(hit), hit, ...always })),
    ...more.map(({ sessionId, count }) => ({
      label: `$(ellipsis) ${moreLook(count, names.get(sessionId) ?? '')}`,
      sessionId,
      ...always,
    })),
  ];
  if (completions.length === 0) return picks;
  return [
    ...picks,
    { label: 'filters', kind: vscode.QuickPickItemKind.Separator },
    ...completions.map(({ text, about, query }) => ({
      label: text,
      description: about,
      query,
      ...always,
    })),
  ];
}

/** Searches all sessions while a query is typed, and returns the chosen hit. */
async function pickHit(app: Parts['app'], mode: SessionSearchMode): Promise<SearchHit | undefined> {
  const box = vscode.window.createQuickPick<Pick>();
  const query: Query = { typed: '', mode, directory: folders()[0] };
  let running = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const find = async () => {
    running.abort(new DOMException('typed on', 'AbortError'));
    running = new AbortController();
    const { signal } = running;
    box.busy = true;
    const found = await app.run(() => search(app.connection, { ...query }, signal));
    if (signal.aborted) return;
    box.busy = false;
    box.items = found ? picksOf(found) : [];
  };
  const show = () => {
    const { title, says } = MODES.find(({ mode }) => mode === query.mode) ?? {};
    const next = MODES.find(({ mode }) => mode === nextMode(query.mode));
    box.title = `${title ?? ''}${query.sessionId ? ' (one session)' : ''}`;
    box.placeholder = says;
    box.buttons = [
      { iconPath: new vscode.ThemeIcon('whole-word'), tooltip: next?.title ?? 'Another mode' },
    ];
    void find();
  };
  const type = (typed: string) => {
    box.value = typed;
    query.typed = typed;
    show();
  };
  // The items already match, so VS Code must not filter them by what is typed.
  box.matchOnDescription = box.matchOnDetail = true;
  box.onDidChangeValue((typed) => {
    query.typed = typed;
    clearTimeout(timer);
    timer = setTimeout(() => void find(), PAUSE_MS);
  });
  box.onDidTriggerButton(() => {
    query.mode = nextMode(query.mode);
    show();
  });
  return new Promise((resolve) => {
    box.onDidAccept(() => {
      const [chosen] = box.selectedItems;
      if (chosen?.query !== undefined) return type(chosen.query);
      if (chosen?.sessionId !== undefined) {
        query.sessionId = chosen.sessionId;
        return show();
      }
      if (chosen?.hit === undefined) return;
      resolve(chosen.hit);
      box.hide();
    });
    box.onDidHide(() => {
      clearTimeout(timer);
      running.abort(new DOMException('closed', 'AbortError'));
      resolve(undefined);
      box.dispose();
    });
    box.show();
    show();
  });
}
