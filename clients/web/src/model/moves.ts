/** Moves, labels, compactions, commands and messages. */

import { storage, type LiveState } from './live-state.ts';
import { hint } from './keys.ts';
import { RpcError } from '../source/rpc.ts';
import { plural, visible } from '../text/visible.ts';

/** A navigation, compaction or command that is running. */
export interface Running {
  kind: 'navigation' | 'compaction' | 'command';
  /** The id of the navigation, or of the request if it is not a navigation. */
  id: string;
  about: string;
  text: string;
  cancelling: boolean;
}

/** The members of a result that say whether a change was cancelled, why, and by whom. */
export interface Refusal {
  cancelled: boolean;
  reason?: string;
  by?: string;
  message?: string;
}

/** A diagnostic of the session file. */
export interface Diagnostic {
  kind: string;
  newestTipId?: string;
  newerTurns?: number;
}

interface NavigationResult extends Refusal {
  editorText?: string;
  summaryEntry?: unknown;
  preparation?: { abandonedCount: number };
  canSummarize?: boolean;
}

const REASONS = new Map([
  ['cancelledByClient', 'Another client has refused.'],
  ['noAnswer', 'Nobody has answered in time.'],
  ['hookFailed', 'A hook has failed.'],
  ['aborted', 'Aborted. Nothing has moved.'],
]);

/** The verbs for the client or hook that prevented the change. */
const DEEDS = new Map([
  ['cancelledByClient', 'has cancelled'],
  ['hookFailed', 'has failed'],
]);

/** Returns why nothing was changed, and who cancelled or failed. */
export function reasonText(result: Refusal): string | undefined {
  const { reason, by, message } = result;
  const deed = DEEDS.get(reason ?? '');
  if (deed !== undefined && by !== undefined)
    return visible(`${by} ${deed}${message === undefined ? '.' : `: ${message}`}`);
  return REASONS.get(reason ?? '');
}

const HINTS = new Map([
  [
    'summarizerUnavailable',
    'No summarizer is configured. Start the daemon with --summarizer outline, or go without a summary.',
  ],
  [
    'summarizerFailed',
    'The summarizer has failed, and nothing has moved. Try again, or go without a summary.',
  ],
  ['sessionBusy', 'Another operation is running in this session. Try again when it has ended.'],
  ['leafMoved', 'The leaf has moved meanwhile. Look at the tree and try again.'],
  ['nothingToUndo', 'Nothing to undo.'],
  ['nothingToCompact', 'The context has no entries older than those to keep.'],
  ['readOnly', 'The session cannot be changed from here.'],
  ['storageFull', 'There is no space on the disk. Nothing was lost; try again when there is.'],
]);

/** The advice for a failure, if there is one. */
export function failureText(error: unknown): string | undefined {
  return error instanceof RpcError ? HINTS.get(error.kind) : undefined;
}

export class Moves {
  running: Running | undefined;
  /** The text of the message that is being written. */
  draft = '';
  composing = false;
  sending = false;
  /** If the file opens beside its newest entries, the diagnostic about this. */
  private beside: Diagnostic | undefined;
  private abort: AbortController | undefined;
  private requestId: number | undefined;

  constructor(private readonly live: LiveState) {}

  private failed(error: unknown): void {
    const hint = failureText(error);
    if (hint === undefined) this.live.app.failed(error);
    else this.live.app.say(hint, 'error');
  }

  private session(params: object): object {
    return { sessionId: this.live.sessionId, ...params };
  }

  note(diagnostics: Diagnostic[] = []): void {
    this.beside = diagnostics.find(({ kind }) => kind === 'leafBesideNewest');
  }

  /** Shows that the session is open beside its newest entries, and the key that goes to them. */
  sayNewer(): void {
    if (!this.beside) return;
    const turns = this.beside.newerTurns ?? 0;
    const newer =
      turns === 0
        ? 'Newer entries are'
        : `${plural(turns, 'newer turn')} ${turns === 1 ? 'is' : 'are'}`;
    this.live.app.say(`${newer} on another branch: ${hint('to-news')} goes there.`);
  }

  goToNews(): void {
    const newest = this.beside?.newestTipId;
    if (newest === undefined) this.live.app.say('No newer entries are on another branch.');
    else this.live.app.go(newest).catch(this.live.app.failed);
  }

  /** Shows how many entries the move leaves behind, and asks how to move. */
  async askToGo(id: string): Promise<void> {
    const params = this.session({ targetId: id, dryRun: true, rewind: true });
    try {
      const result = await this.live.call<NavigationResult>('navigate_tree', params);
      const row = this.live.app.session?.tree.row();
      const isUser = row?.id === id && row.role === 'user';
      const count = result.preparation?.abandonedCount;
      const canSummarize = result.canSummarize === true;
      if (result.reason === 'alreadyThere') this.live.app.say('The leaf is here already.');
      else this.live.show({ kind: 'go', id, count, isUser, canSummarize });
    } catch (error) {
      this.failed(error);
    }
  }

  async go(id: string, summarize: boolean, focus: string): Promise<void> {
    this.live.show(undefined);
    const navigationId = crypto.randomUUID();
    const about = summarize ? 'Summarizing the branch that is left' : 'Going there';
    this.begin({ kind: 'navigation', id: navigationId, about, text: '', cancelling: false });
    const instructions =
      summarize && focus.trim() !== '' ? { customInstructions: focus.trim() } : {};
    const params = { targetId: id, summarize, navigationId, rewind: true, ...instructions };
    try {
      const result = await this.live.call<NavigationResult>('navigate_tree', this.session(params));
      this.moved(result);
    } catch (error) {
      this.failed(error);
    } finally {
      this.end();
    }
  }

  private moved(result: NavigationResult): void {
    const { app } = this.live;
    if (result.cancelled) {
      app.say(reasonText(result) ?? 'Nothing has moved.', 'warning');
      return;
    }
    // The user has now chosen the position, so the hint is no longer needed.
    this.note();
    if (result.editorText !== undefined) this.write(result.editorText);
    const summary =
      result.summaryEntry === undefined ? '' : ' A summary of the branch is in its place.';
    const elsewhere = `${hint('continue-elsewhere')} goes on in another agent.`;
    const next =
      result.editorText === undefined
        ? `${hint('compose')} writes a message here, ${elsewhere}`
        : `Send the text, then ${elsewhere}`;
    app.say(`Moved.${summary} ${next} ${hint('undo')} takes you back.`);
    this.toLeaf();
  }

  private toLeaf(): void {
    const { session } = this.live.app;
    void this.live
      .call<{ leafId: string | null }>('get_leaf', this.session({}))
      .then(async ({ leafId }) => {
        if (leafId === null) await session?.tree.reload();
        else await session?.tree.go(leafId);
      })
      .catch(this.live.app.failed);
  }

  private begin(running: Running): void {
    this.running = running;
    this.live.app.changed();
  }

  private end(): void {
    this.running = undefined;
    this.abort = undefined;
    this.live.app.changed();
  }

  progress(method: string, params: Record<string, unknown>): void {
    const { running } = this;
    if (!running) return;
    if (method === 'summary_delta') {
      if (params.navigationId === running.id) running.text += String(params.delta);
    } else if (params.token === running.id || params.token === this.requestId) {
      running.text = `${Number(params.progress).toLocaleString('en')} characters`;
    }
    this.live.app.changed();
  }

  cancel(): void {
    const { running } = this;
    if (!running) return;
    running.cancelling = true;
    if (running.kind === 'navigation') {
      const params = this.session({ navigationId: running.id });
      this.live.call('abort_navigation', params).catch(this.live.app.failed);
    } else this.abort?.abort();
    this.live.app.changed();
  }

  undo(method: 'undo_navigation' | 'redo_navigation'): void {
    const undone = method === 'undo_navigation';
    this.live
      .call(method, this.session({}))
      .then(() => {
        this.live.app.say(undone ? 'Undone. U redoes it.' : 'Redone.');
        this.toLeaf();
      })
      .catch((error: unknown) => {
        const nothing = error instanceof RpcError && error.kind === 'nothingToUndo';
        if (nothing && !undone) this.live.app.say('Nothing to redo.');
        else this.failed(error);
      });
  }

  async label(targetId: string, label: string): Promise<void> {
    this.live.show(undefined);
    const text = label.trim();
    try {
      await this.live.call(
        'append_label',
        this.session({ targetId, label: text === '' ? null : text }),
      );
      await this.live.app.session?.tree.reload();
      this.live.app.session?.refreshPath();
    } catch (error) {
      this.failed(error);
    }
  }

  async compact(instructions: string): Promise<void> {
    this.live.show(undefined);
    const given = instructions.trim() === '' ? {} : { customInstructions: instructions.trim() };
    await this.long('compaction', 'Compacting the context', 'compact', given, (result) => {
      const compaction = result as NavigationResult;
      if (compaction.cancelled)
        this.live.app.say(reasonText(compaction) ?? 'Nothing was compacted.', 'warning');
      else {
        this.live.app.say('Compacted.');
        this.toLeaf();
      }
    });
  }

  async run(name: string, args: string): Promise<void> {
    this.live.show(undefined);
    await this.long('command', `Running ${name}`, 'run_command', { name, args }, (result) => {
      const { output, prompt } = result as { output?: string; prompt?: string };
      if (prompt !== undefined) this.write(prompt);
      if (output !== undefined) this.live.show({ kind: 'output', name, output });
    });
  }

  /** Runs a call that takes time and can be cancelled. */
  private async long(
    kind: Running['kind'],
    about: string,
    method: string,
    params: object,
    done: (result: unknown) => void,
  ): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    this.begin({ kind, id: '', about, text: '', cancelling: false });
    try {
      const token = (id: number): void => {
        this.requestId = id;
      };
      const options = { signal: abort.signal, token };
      done(await this.live.link?.call(method, this.session(params), options));
    } catch (error) {
      if (error instanceof RpcError && error.kind === 'cancelled') this.live.app.say('Cancelled.');
      else this.failed(error);
    } finally {
      this.end();
    }
  }

  // The browser keeps the draft of each session for this tab, also when the page is reloaded.

  private key(): string {
    return `treelined.draft.${this.live.sessionId ?? ''}`;
  }

  restoreDraft(): void {
    this.draft = storage()?.getItem(this.key()) ?? '';
    this.composing = this.draft !== '';
  }

  setDraft(text: string): void {
    this.draft = text;
    if (text === '') storage()?.removeItem(this.key());
    else storage()?.setItem(this.key(), text);
    this.live.app.changed();
  }

  write(text: string): void {
    this.setDraft(text);
    this.compose();
  }

  compose(): void {
    this.composing = true;
    this.live.app.changed();
    // The field gets the focus after the page is drawn, and before the next key.
    queueMicrotask(() => document.querySelector<HTMLElement>('#compose textarea')?.focus());
  }

  closeDraft(): void {
    this.composing = false;
    this.live.app.changed();
    document.querySelector<HTMLElement>('#tree')?.focus();
  }

  async send(): Promise<void> {
    const content = this.draft;
    if (content.trim() === '' || this.sending) return;
    this.sending = true;
    this.live.app.changed();
    const expectedLeafId = this.live.source?.leafId() ?? null;
    const message = { role: 'user', content, timestamp: Date.now() };
    try {
      await this.live.call('append_message', this.session({ message, expectedLeafId }));
      this.setDraft('');
      this.composing = false;
      this.live.app.say('Sent.');
      this.toLeaf();
    } catch (error) {
      this.failed(error);
    } finally {
      this.sending = false;
      this.live.app.changed();
    }
  }
}
