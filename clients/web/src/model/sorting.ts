/** Tags, pins, families and candidates (protocol.md §3.21 to §3.23). */

import type { LiveState } from './live-state.ts';
import type { SessionList } from './session-list.ts';
import type { Relative, SessionRow } from '../wire.ts';
import { failureText, reasonText, type Refusal } from './moves.ts';
import { visible } from '../text/visible.ts';

/** The members of a branch that are needed for candidates. */
export interface Answer {
  tipId: string;
  name: string;
  group?: string;
  forkId: string | null;
  lastActivity: string;
  isActive: boolean;
}

interface Side {
  outcome: string;
}

interface Chosen extends Refusal {
  others: string[];
}

/** The most branches that are compared at once. */
const MOST = 32;

/** The answers to the newest question with several answers; empty if there is no such question. */
export function answersOf(branches: readonly Answer[]): Answer[] {
  const groups = new Map<string, Answer[]>();
  for (const branch of branches) {
    if (branch.group === undefined) continue;
    // Groups at different forks may have the same name.
    const key = JSON.stringify([branch.group, branch.forkId]);
    groups.set(key, [...(groups.get(key) ?? []), branch]);
  }
  let newest: Answer[] = [];
  let time = '';
  for (const group of groups.values()) {
    const last =
      group
        .map(({ lastActivity }) => lastActivity)
        .sort()
        .at(-1) ?? '';
    if (group.length > 1 && last >= time) [newest, time] = [group, last];
  }
  return newest.slice(0, MOST);
}

/** The tags in a text to add, and those with a `-` to remove. */
export function tagsOf(text: string): { add: string[]; remove: string[] } {
  const words = text.split(/[\s,]+/u).filter((word) => word !== '' && word !== '-');
  return {
    add: words.filter((word) => !word.startsWith('-')),
    remove: words.filter((word) => word.startsWith('-')).map((word) => word.slice(1)),
  };
}

export class Sorting {
  constructor(
    private readonly live: LiveState,
    private readonly list: SessionList,
  ) {}

  async tag(text: string): Promise<void> {
    const result = await this.call<{ tags: string[] }>('tag_session', tagsOf(text));
    if (!result) return;
    const tags = result.tags.map((tag) => `#${tag}`).join(' ');
    this.live.app.say(tags === '' ? 'The session has no tags.' : visible(`Tags: ${tags}`));
  }

  /** Pins the session, or removes its pin. */
  async pin(): Promise<void> {
    const pinned = await this.toggle(this.live.sessionId, 'pinned');
    if (pinned !== undefined)
      this.live.app.say(pinned ? 'The session is pinned.' : 'The session is not pinned.');
  }

  /** Archives a session, or restores it from the archive. */
  async archive(sessionId = this.live.sessionId): Promise<void> {
    const archived = await this.toggle(sessionId, 'archived');
    if (archived === undefined) return;
    this.live.app.say(
      archived
        ? 'The session is archived; the list leaves it out.'
        : 'The session is in the list again.',
    );
    if (this.live.listing) await this.list.load().catch(this.live.app.failed);
  }

  /** Sets or removes a mark of a session on this machine. Undefined after a failure. */
  private async toggle(
    sessionId: string | undefined,
    mark: 'pinned' | 'archived',
  ): Promise<boolean | undefined> {
    if (sessionId === undefined) return undefined;
    const found = await this.call<{ sessions: SessionRow[] }>('list_sessions', {
      query: sessionId,
      archived: true,
    });
    const row = found?.sessions.find((each) => each.sessionId === sessionId);
    if (!row) return undefined;
    const params = { sessionId, [mark]: row[mark] !== true };
    const marked = await this.call<{ pinned: boolean; archived: boolean }>('mark_session', params);
    return marked?.[mark];
  }

  /** Shows the family of the session. */
  async showFamily(): Promise<void> {
    const { sessionId } = this.live;
    const found = await this.call<{ sessions: Relative[] }>('get_family', { sessionId });
    if (!found) return;
    const born = this.live.app.session?.tree.row()?.sessions?.[0]?.sessionId;
    if (found.sessions.length > 1)
      this.live.show({ kind: 'family', relatives: found.sessions, born });
    else this.live.app.say('No session comes from this one, and it comes from none.');
  }

  /** Opens a session of the family. The parent is opened at the entry from which this session comes. */
  async openRelative(relatives: readonly Relative[], chosen: Relative): Promise<void> {
    const own = relatives.find(({ sessionId }) => sessionId === this.live.sessionId)?.comesFrom;
    this.live.show(undefined);
    const entry = own?.sessionId === chosen.sessionId ? own.entryId : undefined;
    try {
      await this.live.openSession({ session: chosen.sessionId }, entry);
      if (entry !== undefined) await this.live.app.go(entry);
    } catch (error) {
      this.live.app.failed(error);
    }
  }

  /** Shows the answers to the newest question side by side. */
  async showCandidates(): Promise<void> {
    const listed = await this.call<{ branches: Answer[] }>('list_branches', {});
    const found = answersOf(listed?.branches ?? []);
    const [a, b, ...more] = found.map(({ tipId }) => tipId);
    if (a === undefined || b === undefined) {
      if (listed) this.live.app.say('No question has several answers here.');
      return;
    }
    const params = { a, b, more };
    const compared = await this.call<{ a: Side; b: Side; more?: Side[] }>(
      'compare_branches',
      params,
    );
    if (!compared) return;
    const sides = [compared.a, compared.b, ...(compared.more ?? [])];
    const candidates = found.map(({ tipId, name, isActive }, at) => {
      const outcome = sides[at]?.outcome ?? '';
      return { tipId, isActive, outcome: outcome === '' ? name : outcome };
    });
    this.live.show({ kind: 'candidates', candidates });
  }

  /** Moves the leaf to a candidate, and notes the reason on the other candidates. */
  async choose(tipId: string, reason: string): Promise<void> {
    this.live.show(undefined);
    const because = reason.trim() === '' ? {} : { reason: reason.trim() };
    const chosen = await this.call<Chosen>('choose', { tipId, ...because });
    if (!chosen) return;
    if (chosen.cancelled) {
      this.live.app.say(reasonText(chosen) ?? 'Nothing was chosen.', 'warning');
      return;
    }
    const { length } = chosen.others;
    this.live.app.say(
      `Chosen. ${length === 1 ? 'The other one says why.' : `${String(length)} others say why.`}`,
    );
  }

  /** Returns undefined after a failure. The failure is shown. */
  private async call<T>(method: string, params: object): Promise<T | undefined> {
    const { app, sessionId } = this.live;
    const of = ['list_sessions', 'get_family', 'mark_session'].includes(method)
      ? {}
      : { sessionId };
    try {
      return await this.live.call<T>(method, { ...of, ...params });
    } catch (error) {
      const text = failureText(error);
      if (text === undefined) app.failed(error);
      else app.say(text, 'error');
      return undefined;
    }
  }
}
