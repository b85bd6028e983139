// Tags, pins and archived sessions; families of sessions; and candidates, which are answers of which a person chooses
// one.

import type { BornSession, Branch, FamilyRow, SessionRow } from 'treelined';
import type { Connection } from './connection.js';
import { reasonText } from './navigation.js';
import type { Session } from './session.js';
import { count } from './text.js';

/** Splits a text into tags. */
function words(text: string): string[] {
  const all = text.split(/[\s,]+/).map((word) => word.replace(/^#/, '').toLowerCase());
  return [...new Set(all.filter((word) => word !== ''))];
}

/** Gives a session exactly the tags in a text. `before` are its present tags. */
export async function setTags(
  session: Session,
  before: readonly string[],
  text: string,
): Promise<string> {
  const wanted = words(text);
  const add = wanted.filter((tag) => !before.includes(tag));
  const remove = before.filter((tag) => !wanted.includes(tag));
  if (add.length + remove.length === 0) return 'The tags are as they were.';
  const { tags } = await session.call('tag_session', { add, remove });
  return tags.length === 0
    ? 'The session has no tags.'
    : `Tags: ${tags.map((tag) => `#${tag}`).join(' ')}`;
}

/** Sets or removes a mark of a session on this machine. */
export async function toggleMark(
  at: Connection,
  row: SessionRow,
  mark: 'pinned' | 'archived',
): Promise<string> {
  const { sessionId } = row;
  const params = { sessionId, [mark]: row[mark] !== true };
  const now = (await at.call('mark_session', params))[mark];
  if (mark === 'pinned') return now ? 'The session is pinned.' : 'The session is not pinned.';
  return now ? 'The session is archived; the list leaves it out.' : 'The session is listed again.';
}

/** The row of a session, which may be archived. */
export async function rowOfSession(at: Connection, sessionId: string): Promise<SessionRow> {
  const { sessions } = await at.call('list_sessions', { query: sessionId, archived: true });
  const row = sessions.find((each) => each.sessionId === sessionId);
  if (row === undefined) throw new Error('This session is not in the list.');
  return row;
}

/** A session of a family, how it comes from its parent, and the entry to show in it. */
export interface Relative {
  row: FamilyRow;
  /** Its indent in the tree of sessions, and how it comes from its parent. */
  place: string;
  isOwn: boolean;
  /** Whether it comes from the selected row. */
  isBorn: boolean;
  /** If this is the parent of the session: the entry from which the session comes. */
  entryId?: string;
}

/** The family of a session, each session before its children. `born` are the sessions that come from a row. */
export async function family(
  at: Connection,
  sessionId: string,
  born: readonly BornSession[] = [],
): Promise<Relative[]> {
  const { sessions } = await at.call('get_family', { sessionId });
  const own = sessions.find((row) => row.sessionId === sessionId)?.comesFrom;
  return sessions.map((row) => {
    const kind = row.comesFrom ? `${row.comesFrom.kind} · ` : '';
    const isParent = own?.sessionId === row.sessionId;
    return {
      row,
      place: `${'\u2003'.repeat(Math.min(row.depth, 16))}${kind}`,
      isOwn: row.sessionId === sessionId,
      isBorn: born.some((each) => each.sessionId === row.sessionId),
      ...(isParent && own.entryId !== undefined && { entryId: own.entryId }),
    };
  });
}

/** An answer to a question, and its outcome. */
export interface Candidate {
  branch: Branch;
  outcome: string;
}

/** The most branches that are compared at once. */
const MOST = 32;

/** The answers to the newest question with several answers; empty if there is no such question. */
export async function candidates(session: Session): Promise<Candidate[]> {
  const { branches } = await session.call('list_branches', {});
  const groups = new Map<string, Branch[]>();
  for (const branch of branches) {
    if (branch.group === undefined) continue;
    // Two groups may have the same name at different forks.
    const key = JSON.stringify([branch.group, branch.forkId]);
    groups.set(key, [...(groups.get(key) ?? []), branch]);
  }
  const latest = (group: Branch[]) =>
    group
      .map(({ lastActivity }) => lastActivity)
      .sort()
      .at(-1);
  const several = [...groups.values()].filter((group) => group.length > 1);
  several.sort((a, b) => ((latest(a) ?? '') < (latest(b) ?? '') ? 1 : -1));
  const found = (several[0] ?? []).slice(0, MOST);
  const [a, b, ...more] = found.map(({ tipId }) => tipId);
  if (a === undefined || b === undefined) return [];
  const compared = await session.call('compare_branches', { a, b, more });
  const outcomes = [compared.a, compared.b, ...(compared.more ?? [])];
  return found.map((branch, at) => {
    const outcome = outcomes[at]?.outcome ?? '';
    return { branch, outcome: outcome === '' ? branch.name : outcome };
  });
}

/** Moves the leaf to a candidate, and notes the reason on the other candidates. */
export async function choose(session: Session, tipId: string, reason: string): Promise<string> {
  const because = reason.trim();
  const result = await session.call('choose', { tipId, ...(because && { reason: because }) });
  if (result.cancelled && result.reason)
    return reasonText(result.reason, result.by, result.message);
  return `Chosen. ${count(result.others.length, 'other says why', 'others say why')}.`;
}
