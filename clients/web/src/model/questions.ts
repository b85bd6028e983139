/** Questions of the daemon and of other clients to the person at this page (protocol.md §5 and §13). */

export interface MoveQuestion {
  kind: 'tree' | 'compact' | 'fork';
  eventId: string;
  /** The session that the question is about. */
  sessionId: string;
  targetId: string | undefined;
  /** The number of entries that are left behind or summarized. */
  count: number;
  /** Whether the answer may contain the summary. */
  summary: boolean;
}

export interface PersonQuestion {
  kind: 'select' | 'confirm' | 'input' | 'editor';
  eventId: string;
  by: string;
  title: string;
  message?: string;
  options?: string[];
  placeholder?: string;
  initial?: string;
}

export type Question = MoveQuestion | PersonQuestion;

export function isPersonQuestion(question: Question): question is PersonQuestion {
  return 'by' in question;
}

type Params = Record<string, unknown>;

interface Preparation {
  targetId?: string;
  abandonedCount?: number;
  userWantsSummary?: boolean;
  entriesToSummarize?: unknown[];
  entryIds?: unknown[];
}

/** The question of a notification; undefined if the daemon does not wait for an answer of this page. */
export function questionOf(method: string, params: Params): Question | undefined {
  if (method === 'user_asked') return params as unknown as PersonQuestion;
  const kind = {
    session_before_tree: 'tree',
    session_before_compact: 'compact',
    session_before_fork: 'fork',
  }[method] as MoveQuestion['kind'] | undefined;
  if (kind === undefined || params.timeoutMs === 0) return undefined;
  const preparation = (params.preparation ?? {}) as Preparation;
  const listed = preparation.entriesToSummarize ?? preparation.entryIds ?? [];
  return {
    kind,
    eventId: String(params.eventId),
    sessionId: String(params.sessionId),
    targetId: preparation.targetId ?? (params.entryId as string | undefined),
    count: preparation.abandonedCount ?? listed.length,
    summary: kind === 'compact' || preparation.userWantsSummary === true,
  };
}
