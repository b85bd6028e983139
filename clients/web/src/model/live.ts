/** The page with a daemon: its connection, the list of sessions, and all changes of sessions. */

import type { PageState } from './page-state.ts';
import { LiveState, storage, type Command } from './live-state.ts';
import type { Action } from './keys.ts';
import { formatRoute, parseRoute, type SessionRoute } from './route.ts';
import { questionOf, type Question } from './questions.ts';
import { Branches } from './branches.ts';
import { Sorting } from './sorting.ts';
import { Moves, type Diagnostic } from './moves.ts';
import { Presence } from './presence.ts';
import { SessionList } from './session-list.ts';
import { LiveSource, type WireSession } from '../source/live.ts';
import { Link, RpcError } from '../source/rpc.ts';

const TOKEN = 'treelined.token';
const ASK = 'treelined.ask';

export class Live extends LiveState {
  readonly link: Link | undefined;
  readonly list: SessionList;
  readonly moves: Moves;
  readonly branches: Branches;
  readonly sorting: Sorting;
  readonly presence: Presence;
  questions: Question[] = [];
  /** The time from which an import adds the entries that the last import has held back (protocol.md §3.17). */
  heldUntil: string | undefined;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  /** The response to the request that opens the first session. */
  private opening: Promise<WireSession> | undefined;

  constructor(app: PageState) {
    super(app);
    const route = parseRoute(location.hash);
    const token = route.token ?? storage()?.getItem(TOKEN) ?? undefined;
    if (route.token !== undefined) {
      storage()?.setItem(TOKEN, route.token);
      history.replaceState(null, '', location.pathname + formatRoute(route));
    }
    app.route = sessionOf(route);
    this.list = new SessionList(this);
    this.moves = new Moves(this);
    this.branches = new Branches(this);
    this.sorting = new Sorting(this, this.list);
    this.presence = new Presence((method, params) => this.call(method, params), app.changed);
    if (token === undefined) return;
    this.link = new Link(`ws://${location.host}/ws`, token, {
      introduced: () => this.introduced(),
      opened: () => void this.opened().catch(app.failed),
      stateChanged: app.changed,
      notified: (method, params) => this.notified(method, params),
    });
    this.link.answers = storage()?.getItem(ASK) === '1';
  }

  async start(): Promise<void> {
    this.listing = !isNamed(this.app.route);
    this.app.changed();
    this.link?.connect();
    addEventListener('online', () => this.reconnect());
    return Promise.resolve();
  }

  get canWrite(): boolean {
    return this.link?.state === 'open' && this.source?.session.readOnly === false;
  }

  /** Whether the daemon can write summaries, so that compactions are offered. */
  get summarizes(): boolean {
    return this.link?.summarizes === true;
  }

  get asksBeforeMoves(): boolean {
    return this.link?.answers === true;
  }

  /** The handshake says whether this page is asked before moves, so a change needs a new connection. */
  askBeforeMoves(ask: boolean): void {
    if (!this.link) return;
    this.link.answers = ask;
    storage()?.setItem(ASK, ask ? '1' : '0');
    this.link.connect();
  }

  reconnect(): void {
    if (this.link && this.link.state !== 'open') this.link.connect();
  }

  /** Opens the first session without waiting for the answer to the handshake, which does not affect it. */
  private introduced(): void {
    this.opening = undefined;
    if (this.source || !isNamed(this.app.route)) return;
    this.opening = this.askToOpen(this.app.route);
    // The caller that awaits `opening` reports the failure.
    this.opening.catch(() => undefined);
  }

  private async opened(): Promise<void> {
    this.questions = [];
    this.list.forget();
    if (this.dialog?.kind === 'question') this.dialog = undefined;
    if (this.listing) await this.list.load();
    if (this.source) await this.reopen(this.source);
    else if (isNamed(this.app.route)) {
      try {
        await this.openSession(this.app.route);
      } catch (error) {
        // The next connection opens the session again.
        if (error instanceof RpcError && error.kind === 'disconnected') return;
        this.app.failed(error);
        this.showList();
      }
    }
    this.app.changed();
  }

  /** After a new connection, opens the same session again at the same position. */
  private async reopen(source: LiveSource): Promise<void> {
    source.update(await this.askToOpen(this.app.route));
    this.presence.watch(source.session.sessionId);
    this.app.session?.bodies.clear();
    await this.app.session?.tree.reload();
  }

  private async askToOpen({ path, session: sessionId }: SessionRoute): Promise<WireSession> {
    const which = path === undefined ? { sessionId } : { path };
    const { session, diagnostics } = await this.call<{
      session: WireSession;
      diagnostics: Diagnostic[];
    }>('open_session', which);
    this.moves.note(diagnostics);
    return session;
  }

  async openSession(which: SessionRoute, entry?: string): Promise<void> {
    const { link } = this;
    if (!link) return;
    const opening = which === this.app.route ? this.opening : undefined;
    this.opening = undefined;
    const session = await (opening ?? this.askToOpen(which));
    const old = this.source;
    if (old && old.session.sessionId !== session.sessionId) {
      await this.call('close_session', { sessionId: old.session.sessionId }).catch(() => undefined);
    }
    this.source = new LiveSource(link, session, { loaded: this.app.changed });
    const place = entry ?? parseRoute(location.hash).entry;
    this.app.route = sessionOf(which);
    const route = { ...this.app.route, ...(place === undefined ? {} : { entry: place }) };
    history.replaceState(null, '', formatRoute(route));
    this.presence.watch(session.sessionId);
    this.app.open(this.source);
    this.listing = false;
    this.moves.restoreDraft();
    const shown = this.app.start();
    const selected = place ?? this.source.selected;
    if (selected !== undefined) this.source.beginPath(selected);
    this.heldUntil = undefined;
    void this.askHeld().catch(this.app.failed);
    await shown;
    this.moves.sayNewer();
    document.querySelector<HTMLElement>('#tree')?.focus({ preventScroll: true });
    this.app.changed();
  }

  private async askHeld(): Promise<void> {
    const { sessionId } = this;
    const { imports } = await this.call<{
      imports: { report: { session: { heldUntil?: string } } }[];
    }>('import_report', { sessionId });
    if (sessionId !== this.sessionId) return;
    this.heldUntil = imports.at(-1)?.report.session.heldUntil;
    this.app.changed();
  }

  private notified(method: string, params: Record<string, unknown>): void {
    if (method === 'sessions_changed') return this.list.changed();
    if (method === 'search_hit') return this.list.text.hit(params);
    if (method === 'user_notified') {
      const level = params.level === 'error' || params.level === 'warning' ? params.level : 'info';
      return this.app.say(`${String(params.by)}: ${String(params.message)}`, level);
    }
    if (method === 'event_resolved') return this.resolved(String(params.eventId));
    const question = questionOf(method, params);
    if (question) return this.ask(question, params);
    if (params.sessionId !== this.sessionId) return;
    if (method === 'summary_delta' || method === 'progress')
      return this.moves.progress(method, params);
    if (method === 'session_closed') {
      this.app.say('The session was closed or deleted.', 'warning');
      this.presence.stop();
      this.showList();
    } else if (method === 'session_info_changed') {
      this.source?.retitle({ name: typeof params.name === 'string' ? params.name : undefined });
      this.app.changed();
    } else {
      const { firstMessage } = params;
      if (typeof firstMessage === 'string') this.source?.retitle({ firstMessage });
      this.refreshSoon(method);
    }
  }

  /** Reads the tree again soon, at most about ten times a second. */
  refreshSoon(method: string): void {
    const isNews = [
      'entries_appended',
      'session_tree',
      'session_compact',
      'branches_changed',
      'session_reordered',
      'events_lost',
    ].includes(method);
    if (!isNews || this.refreshing !== undefined) return;
    this.refreshing = setTimeout(() => {
      this.refreshing = undefined;
      this.refresh().catch(this.app.failed);
    }, 80);
  }

  private async refresh(): Promise<void> {
    const { source } = this;
    const { session } = this.app;
    if (!source || session?.source !== source) return;
    const before = source.leafId();
    const { leafId, diagnostics } = await source.call<{
      leafId: string | null;
      diagnostics?: Diagnostic[];
    }>('get_leaf');
    this.moves.note(diagnostics);
    if (this.heldUntil !== undefined) await this.askHeld();
    source.rows.clear();
    session.bodies.forgetOpenCalls();
    const { tree } = session;
    // If the leaf is selected, the selection follows the leaf.
    const followed =
      !tree.isBetween &&
      (tree.row()?.isLeaf === true || tree.cursorId === before || tree.cursorId === undefined);
    await tree.reload(
      followed ? 'nearest' : 'keep',
      followed && leafId !== null ? leafId : undefined,
    );
    if (tree.cursorId !== undefined && !followed) session.refreshPath();
    source.session.entryCount = Math.max(
      source.session.entryCount,
      tree.view ? tree.view.total + tree.view.hidden : 0,
    );
    this.app.changed();
  }

  private ask(question: Question, params: Record<string, unknown>): void {
    if (params.navigationId !== undefined && params.navigationId === this.moves.running?.id) {
      // The person at this page has requested the move, so no question is needed.
      void this.answer(question, {});
      return;
    }
    this.questions.push(question);
    const typing = document.activeElement?.matches('input, textarea, select') === true;
    if (!this.dialog && !typing && !this.moves.running && !this.app.overlay) this.openQuestion();
    this.app.changed();
  }

  openQuestion(): void {
    const question = this.questions[0];
    if (question) this.show({ kind: 'question', question });
  }

  async answer(question: Question, result: object): Promise<void> {
    this.resolved(question.eventId);
    try {
      await this.call('answer_event', { eventId: question.eventId, result });
    } catch (error) {
      if (error instanceof RpcError && error.kind === 'eventNotPending') {
        this.app.say('The question was over already.', 'warning');
      } else this.app.failed(error);
    }
  }

  private resolved(eventId: string): void {
    this.questions = this.questions.filter((question) => question.eventId !== eventId);
    if (this.dialog?.kind === 'question' && this.dialog.question.eventId === eventId) {
      this.dialog = undefined;
    }
    this.app.changed();
  }

  showList(): void {
    this.listing = true;
    this.app.overlay = undefined;
    void this.list.load().catch(this.app.failed);
    this.app.changed();
  }

  /** Hides the list, and shows the open session again. */
  hideList(): void {
    this.listing = false;
    this.app.changed();
  }

  askToGo(id: string): void {
    this.moves.askToGo(id).catch(this.app.failed);
  }

  rewind(id: string): void {
    this.askToGo(id);
  }

  /** Shows what another agent would get of the path to an entry. */
  askHandoff(id: string): void {
    this.show({ kind: 'handoff', id });
  }

  askLabel(id: string, label: string | undefined): void {
    this.show({ kind: 'label', id, label: label ?? '' });
  }

  async showCommands(): Promise<void> {
    this.show({ kind: 'command', commands: undefined });
    const { commands } = await this.call<{ commands: Command[] }>('list_commands');
    if (this.dialog?.kind === 'command') this.show({ kind: 'command', commands });
  }

  /** Runs an action that needs a daemon. Returns false if the action does not need one. */
  act(action: Action): boolean {
    if (action === 'sessions' || action === 'search-all') this.showList();
    else if (action === 'back' && this.listing && this.app.session) this.hideList();
    else if (action === 'reconnect') this.reconnect();
    else if (action === 'answer') this.openQuestion();
    else if (action === 'command') this.showCommands().catch(this.app.failed);
    else return this.actOnSession(action);
    return true;
  }

  private actOnSession(action: Action): boolean {
    const row = this.app.session?.tree.row();
    if (!row || !this.app.session || this.listing) return false;
    if (action === 'accept') {
      if (this.canWrite && !row.isLeaf) this.askToGo(row.id);
      else return false;
    } else if (action === 'rewind') this.rewind(row.id);
    else if (action === 'label') this.askLabel(row.id, row.label);
    else if (action === 'to-news') this.moves.goToNews();
    else if (action === 'name-branch') this.branches.askName(row);
    else if (action === 'archive') this.branches.toggle(row);
    else if (action === 'show-archived') this.branches.show();
    else if (action === 'aside') this.show({ kind: 'aside' });
    else if (action === 'keep-aside') void this.branches.keep(row);
    else if (action === 'tags') this.show({ kind: 'tags' });
    else if (action === 'export') this.show({ kind: 'export' });
    else if (action === 'pin') void this.sorting.pin();
    else if (action === 'family') void this.sorting.showFamily();
    else if (action === 'candidates') void this.sorting.showCandidates();
    else if (action === 'undo') this.moves.undo('undo_navigation');
    else if (action === 'redo') this.moves.undo('redo_navigation');
    else if (action === 'compact') {
      if (this.summarizes) this.show({ kind: 'compact' });
      else this.app.say('Nothing can be compacted: no summarizer is configured.', 'warning');
    } else if (action === 'continue-elsewhere') {
      this.askHandoff(row.id);
    } else if (action === 'compose') {
      this.moves.compose();
    } else return false;
    return true;
  }
}

function isNamed(route: SessionRoute): boolean {
  return route.path !== undefined || route.session !== undefined;
}

function sessionOf({ path, session }: SessionRoute): SessionRoute {
  if (path !== undefined) return { path };
  return session === undefined ? {} : { session };
}
