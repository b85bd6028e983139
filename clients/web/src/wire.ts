/** The shapes of the protocol that the page uses. schema/treelined.v1.json has all shapes. */

export type Filter = 'default' | 'no-tools' | 'user-only' | 'labeled-only' | 'all';

export const FILTERS: readonly Filter[] = [
  'default',
  'no-tools',
  'user-only',
  'labeled-only',
  'all',
];

/** The matches of a query in a row: `[start, end)` in code points of `snippet`. */
export interface Match {
  snippet: string;
  ranges: [number, number][];
}

/** A row of the tree in a result of `get_tree`. */
export interface Row {
  id: string;
  parentId: string | null;
  type: string;
  role?: string;
  preview: string;
  timestamp?: string;
  icon?: string;
  style?: string;
  label?: string;
  labelTimestamp?: string;
  childCount: number;
  depth: number;
  indent: number;
  onActivePath: boolean;
  isLeaf: boolean;
  isBranchPoint: boolean;
  /** Whether the entry is in an archived branch. */
  archived?: boolean;
  prefix: string;
  tokens?: number;
  toolName?: string;
  toolCall?: { name: string; summary?: string };
  isError?: boolean;
  /** The number of folded branches and entries that the row stands for. `preview` is the text to show. */
  folded?: { branches: number; entries: number };
  /** The ids in the request that keep the row open. Without them it would be folded. */
  opened?: { expand?: string[]; each?: string[] };
  match?: Match;
  flags?: string[];
  /** The name of the branch that begins with the row. A folded row has this name in its preview. */
  branchName?: string;
  /** The sessions that come from the entry. */
  sessions?: BornSession[];
}

/** A session that comes from an entry. */
export interface BornSession {
  sessionId: string;
  kind: string;
}

export type Block =
  | { kind: 'html'; html: string }
  | { kind: 'code'; text: string; language?: string; truncated?: number }
  | { kind: 'diff'; path?: string; text: string; truncated?: number }
  | { kind: 'image'; mimeType: string; data: string }
  | { kind: 'attachment'; mimeType?: string; bytes: number }
  | ToolCall
  | { kind: 'thinking'; html: string }
  | Summary
  | { kind: 'text'; text: string; truncated?: number };

export interface ToolCall {
  kind: 'toolCall';
  id: string;
  name: string;
  argument?: string;
  arguments: string;
  truncated?: number;
  blocks?: Block[];
  result?: { entryId: string; isError: boolean; blocks?: Block[] };
}

export interface Files {
  readFiles: string[];
  modifiedFiles: string[];
}

export interface Summary {
  kind: 'summary';
  of: 'branch' | 'compaction';
  title: string;
  html: string;
  replaced?: { firstId: string; lastId: string };
  files?: Files;
  tokens?: number;
}

export interface Tokens {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** A cost in dollars, split by how well it is known. */
export interface Costs {
  recorded: number | null;
  estimated: number | null;
  /** The number of answers whose cost is unknown. The other two members do not include them. */
  unknownAnswers: number;
}

/** The keys by which the usage of all sessions can be summed. */
export const USAGE_BY = ['day', 'model', 'tool', 'session', 'branch', 'directory'] as const;

export type UsageBy = (typeof USAGE_BY)[number];

/** Sums over answers of all sessions. */
export interface UsageSums {
  answers: number;
  answersWithoutTokens: number;
  tokens: Tokens;
  costs: Costs;
}

export interface Usage {
  rows: (UsageSums & { key: string; title?: string; isActive?: boolean })[];
  moreRows?: number;
  total: UsageSums;
  prices: string;
  unread: { path: string; kind: string; message: string }[];
}

/** Sums over entries. Some members are absent in exports of older versions. */
export interface Stats {
  messages?: Record<string, number>;
  toolCalls?: number;
  tokens?: Tokens;
  /** The recorded cost; 0 if none is recorded. `costs` says how much of it is known. */
  cost?: number;
  costs?: Costs;
  contextTokens?: number;
  models?: {
    provider: string;
    modelId: string;
    messages: number;
    tokens: Tokens;
    cost: number;
    costs?: Costs;
  }[];
  startedAt?: string;
  endedAt?: string;
  activeMs?: number;
}

export interface ComparedBranch {
  entryIds: string[];
  files: Files;
  stats: Stats;
}

export interface Comparison {
  ancestorId: string | null;
  a: ComparedBranch;
  b: ComparedBranch;
}

export interface SessionRow {
  sessionId: string;
  cwd: string;
  name?: string;
  modified: string;
  messageCount: number;
  source?: string;
  tags?: string[];
  pinned?: boolean;
  archived?: boolean;
  git?: { branch?: string };
  firstMessage: string;
  diagnostic?: { kind: string; message: string };
  log?: { openOn: OpenOn[] };
}

/** Another machine that has a session open. */
export interface OpenOn {
  host: string;
}

/** A session of the team that has no file on this machine. */
export interface TeamRow {
  sessionId: string;
  cwd?: string;
  name?: string;
  modified?: string;
  entries?: number;
  host?: string;
  openOn: OpenOn[];
}

/** A session of a family. */
export interface Relative extends SessionRow {
  depth: number;
  comesFrom?: { sessionId: string; kind: string; entryId?: string };
}
