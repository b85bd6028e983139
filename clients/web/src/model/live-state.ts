/** The state that the parts of the live page share: the connection, the open session, and the dialog. */

import type { PageState } from './page-state.ts';
import type { Question } from './questions.ts';
import type { SessionRoute } from './route.ts';
import type { LiveSource } from '../source/live.ts';
import type { Link } from '../source/rpc.ts';
import type { Relative } from '../wire.ts';

export interface Command {
  name: string;
  description?: string;
  argumentHint?: string;
  by?: string;
}

/** An answer to a question, and its outcome. */
export interface Candidate {
  tipId: string;
  outcome: string;
  isActive: boolean;
}

export type LiveDialog =
  | { kind: 'go'; id: string; count: number | undefined; isUser: boolean; canSummarize: boolean }
  | { kind: 'label'; id: string; label: string }
  | { kind: 'name-branch'; id: string }
  | { kind: 'archive'; id: string }
  | { kind: 'aside' }
  | { kind: 'tags' }
  | { kind: 'family'; relatives: readonly Relative[]; born: string | undefined }
  | { kind: 'candidates'; candidates: readonly Candidate[] }
  | { kind: 'compact' }
  | { kind: 'command'; commands: Command[] | undefined }
  | { kind: 'output'; name: string; output: string }
  | { kind: 'question'; question: Question }
  | { kind: 'handoff'; id: string }
  | { kind: 'export' }
  | undefined;

export abstract class LiveState {
  abstract readonly link: Link | undefined;
  source: LiveSource | undefined;
  dialog: LiveDialog;
  /** Whether the list of sessions is shown. */
  listing = false;

  constructor(readonly app: PageState) {}

  abstract openSession(which: SessionRoute, entry?: string): Promise<void>;

  get sessionId(): string | undefined {
    return this.source?.session.sessionId;
  }

  call<T>(method: string, params: object = {}): Promise<T> {
    if (!this.link) return Promise.reject(new Error('There is no connection.'));
    return this.link.call<T>(method, params);
  }

  show(dialog: LiveDialog): void {
    this.dialog = dialog;
    this.app.changed();
  }
}

/** The browser's storage for this tab; undefined if the browser gives the page none. */
export function storage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}
