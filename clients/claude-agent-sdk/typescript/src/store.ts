// The session store.

import { open, stat } from 'node:fs/promises';

import {
  foldSessionSummary,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
  type SessionSummaryEntry,
} from '@anthropic-ai/claude-agent-sdk';
import { type Client, connect, type Methods } from 'treelined';

import {
  HEAD,
  isObject,
  type Json,
  keyIn,
  parsed,
  type Parts,
  partsOf,
  sessionOf,
  textOf,
} from './keys.js';
import { isKind, type OpenOptions, Session } from './session.js';

/** The type of the entries with summaries. Summaries of the SDK for Python have other members. */
const SUMMARY = 'claude-agent-sdk.summary.javascript';
/** The most sessions that stay open. */
const OPEN = 64;
/** The most sessions whose keys are kept in memory. The same number of summaries is kept. */
const KNOWN = 65_536;
/** After this number of records the summary is stored, so that at most this number must be read for a newer one. */
const EVERY = 256;
/** The most bytes at the beginning of a file in which the key is searched for. */
const HEAD_BYTES = 1 << 20;
const LINES = 8;
const GONE = ['sessionNotFound', 'sessionDeleted', 'sessionReplaced', 'sessionExists'] as const;

type Row = Methods['list_sessions']['result']['sessions'][number];

/** The file of a session at the last look. */
interface File {
  path: string;
  mtime: number;
  size: number;
}

/** The summary of a main transcript, up to one of its entries. */
interface Folded {
  path: string | undefined;
  last?: string;
  /** The number of entries up to `last`. */
  count: number;
  summary?: SessionSummaryEntry;
  file?: File;
}

/** Options of a store. */
export interface StoreOptions extends OpenOptions {
  /** The client of treelined to use, which stays open. Without one the store starts a daemon, which `close` ends. */
  client?: Client;
}

/** A store of sessions as trees. Calls take effect in the order in which they are made. */
export class TreelinedSessionStore implements SessionStore {
  readonly #given: Client | undefined;
  readonly #options: OpenOptions;
  #own: Client | undefined;
  #isClosed = false;
  /** The open sessions by the texts of their keys, in the order of their last use. */
  readonly #sessions = new Map<string, Session>();
  readonly #keys = new Map<string, Parts>();
  readonly #folded = new Map<string, Folded>();
  /** Resolves when the last call has ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ client, ...options }: StoreOptions = {}) {
    this.#given = client;
    this.#options = options;
  }

  /** Waits for running calls, and ends the daemon if the store has started it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
    await this.#own?.close();
    this.#own = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Appends all of the entries or none. Entries whose `uuid` is already stored are left out. */
  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const parts = partsOf(key);
    const records = entries.map((entry): Json => ({ ...entry }));
    if (records.length > 0) await this.#run((client) => this.#append(client, parts, records));
  }

  /** Returns the entries in the order in which they were stored; null if there are none. */
  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const parts = partsOf(key);
    return this.#run(async (client) => {
      const session = await this.#open(client, parts);
      if (session === undefined) return null;
      const records: Json[] = [];
      for await (const page of session.pages()) records.push(...session.records(page));
      return records as SessionStoreEntry[];
    });
  }

  /** Returns the main transcripts of a project. */
  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    return this.#run(async (client) => {
      const found = await this.#project(client, projectKey);
      return found.map(({ parts, file }) => ({
        sessionId: parts[1],
        mtime: Math.floor(file.mtime),
      }));
    });
  }

  /** Returns the summaries of the main transcripts of a project. */
  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    return this.#run(async (client) => {
      const summaries: SessionSummaryEntry[] = [];
      for (const { parts, file } of await this.#project(client, projectKey)) {
        const summary = await this.#summary(client, parts, file);
        if (summary !== undefined) summaries.push(summary);
      }
      return summaries;
    });
  }

  /** Moves a transcript to the trash. The transcripts of its subagents are moved first. */
  async delete(key: SessionKey): Promise<void> {
    const parts = partsOf(key);
    await this.#run(async (client) => {
      const subs = parts.length === 2 ? await this.#subagents(client, parts) : [];
      for (const sub of [...subs, parts]) await this.#delete(client, sub);
    });
  }

  /** Returns the sub-paths of the subagents of a session. */
  async listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]> {
    return this.#run(async (client) => {
      const subs = await this.#subagents(client, [key.projectKey, key.sessionId]);
      return subs.flatMap((parts) => parts[2] ?? []);
    });
  }

  /** Runs the job after all earlier jobs have ended, even if some have failed. */
  async #run<T>(job: (client: Client) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error('the store is closed');
    const done = this.#last.then(async () => job(this.#given ?? (this.#own ??= await connect())));
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #open(client: Client, parts: Parts): Promise<Session | undefined> {
    const name = textOf(parts);
    let session = this.#sessions.get(name);
    if (session !== undefined && !session.isThere()) {
      await this.#forget(session);
      session = undefined;
    }
    session ??= await Session.open(client, parts, this.#options);
    if (session !== undefined) await this.#keep(session);
    return session;
  }

  async #keep(session: Session): Promise<void> {
    const name = textOf(session.parts);
    this.#sessions.delete(name);
    this.#sessions.set(name, session);
    for (const [oldest, old] of this.#sessions) {
      if (this.#sessions.size <= OPEN) return;
      this.#sessions.delete(oldest);
      await old.close();
    }
  }

  async #forget(session: Session): Promise<void> {
    this.#folded.delete(textOf(session.parts));
    this.#sessions.delete(textOf(session.parts));
    await session.close();
  }

  async #append(client: Client, parts: Parts, records: readonly Json[]): Promise<void> {
    try {
      await this.#appendOnce(client, parts, records);
    } catch (error) {
      // Another process has deleted the session, or has created it first.
      if (!isKind(error, ...GONE)) throw error;
      await this.#appendOnce(client, parts, records);
    }
  }

  async #appendOnce(client: Client, parts: Parts, records: readonly Json[]): Promise<void> {
    const session =
      (await this.#open(client, parts)) ??
      (await Session.create(client, parts, records, this.#options));
    try {
      await session.append(records);
    } catch (error) {
      await this.#forget(session);
      throw error;
    }
    await this.#keep(session);
    if (session.appended < EVERY || parts.length > 2) return;
    try {
      await this.#storeSummary(session);
    } catch {
      // The records are stored. Without the summary, the next reader must only read more records.
    }
  }

  async #delete(client: Client, parts: Parts): Promise<void> {
    const session = await this.#open(client, parts);
    if (session === undefined) return;
    this.#sessions.delete(textOf(parts));
    this.#folded.delete(textOf(parts));
    try {
      await client.deleteSession({ sessionId: session.id });
    } catch (error) {
      await session.close();
      if (!isKind(error, ...GONE)) throw error;
    }
  }

  /** Returns the keys of the main transcripts, and their files. */
  async #project(client: Client, project: string): Promise<{ parts: Parts; file: File }[]> {
    const found: { parts: Parts; file: File }[] = [];
    for (const row of await this.#rows(client, {})) {
      const parts = await this.#keyOf(row);
      if (parts?.length !== 2 || parts[0] !== project) continue;
      try {
        const { mtimeMs, size } = await stat(row.path);
        found.push({ parts, file: { path: row.path, mtime: mtimeMs, size } });
      } catch {
        // The session was deleted in the meantime.
      }
    }
    return found;
  }

  async #subagents(client: Client, parts: Parts): Promise<Parts[]> {
    const subs: Parts[] = [];
    for (const row of await this.#rows(client, { spawnedBy: sessionOf(parts) })) {
      const key = await this.#keyOf(row);
      if (key?.length === 3 && key[0] === parts[0] && key[1] === parts[1]) subs.push(key);
    }
    return subs;
  }

  /** Returns the rows of all sessions that may belong to a key. */
  async #rows(client: Client, which: { spawnedBy?: string }): Promise<Row[]> {
    const rows = new Map<string, Row>();
    const params = { archived: true, local: true, sort: 'created', ...which } as const;
    let cursor: string | undefined;
    do {
      try {
        const page = await client.listSessions({
          ...params,
          ...(cursor === undefined ? {} : { cursor }),
        });
        for (const row of page.sessions) rows.set(row.sessionId, row);
        cursor = page.nextCursor ?? undefined;
      } catch (error) {
        // The last row of the previous page was deleted in the meantime.
        if (!isKind(error, 'invalidParams') || cursor === undefined) throw error;
        rows.clear();
        return await this.#rows(client, which);
      }
    } while (cursor !== undefined);
    return [...rows.values()].filter((row) => row.sessionId.startsWith('k-'));
  }

  /** Returns the key of a session, from the first lines of its file. */
  async #keyOf(row: Row): Promise<Parts | undefined> {
    const known = this.#keys.get(row.sessionId);
    if (known !== undefined) return known;
    const parts = await readKey(row.path, row.sessionId).catch(() => undefined);
    if (this.#keys.size >= KNOWN) this.#keys.clear();
    if (parts !== undefined) this.#keys.set(row.sessionId, parts);
    return parts;
  }

  /** Returns the summary of the file at this state, or a newer one. */
  async #summary(
    client: Client,
    parts: Parts,
    file: File,
  ): Promise<SessionSummaryEntry | undefined> {
    let folded = this.#folded.get(textOf(parts));
    const was = folded?.file;
    if (was?.path !== file.path || was.mtime !== file.mtime || was.size !== file.size) {
      const session = await this.#open(client, parts);
      if (session === undefined) return undefined;
      folded = await this.#fold(session);
      folded.file = file;
    }
    return folded?.summary && { ...folded.summary, mtime: Math.floor(file.mtime) };
  }

  /** Adds the records that any process has stored since the last time to the summary. */
  async #fold(session: Session): Promise<Folded> {
    const name = textOf(session.parts);
    let folded = this.#folded.get(name);
    if (folded?.path !== session.path) folded = undefined;
    folded ??= await storedSummary(session);
    try {
      await foldOn(session, folded);
    } catch (error) {
      // The last entry of the summary was removed from the file, or the entries of another machine have come among
      // the entries of the summary.
      if (!isKind(error, 'entryNotFound') && !isKind(error, 'treeChanged')) throw error;
      folded = { path: session.path, count: 0 };
      await foldOn(session, folded);
    }
    if (this.#folded.size >= KNOWN) this.#folded.clear();
    this.#folded.set(name, folded);
    return folded;
  }

  /** Stores the summary beside the conversation. The summary contains the id of its last entry. */
  async #storeSummary(session: Session): Promise<void> {
    const { last, count, summary } = await this.#fold(session);
    if (summary !== undefined) {
      const data = { after: last, count, data: summary.data };
      await session.client.appendEntries({
        sessionId: session.id,
        parentId: HEAD,
        keepLeaf: true,
        entries: [{ type: 'custom', customType: SUMMARY, data }],
      });
    }
    session.appended = 0;
  }
}

/** Returns the newest summary in the file. */
async function storedSummary(session: Session): Promise<Folded> {
  let newest: unknown;
  for await (const page of session.custom(SUMMARY)) newest = page.at(-1)?.data;
  const { after, count, data } = isObject(newest) ? newest : {};
  if (typeof after !== 'string' || typeof count !== 'number' || !isObject(data)) {
    return { path: session.path, count: 0 };
  }
  return {
    path: session.path,
    last: after,
    count,
    summary: { sessionId: session.parts[1], mtime: 0, data },
  };
}

async function foldOn(session: Session, folded: Folded): Promise<void> {
  const key = { projectKey: session.parts[0], sessionId: session.parts[1] };
  for await (const page of session.pages(folded.last, folded.count)) {
    folded.last = page.at(-1)?.id as string;
    folded.count += page.length;
    const records = session.records(page) as SessionStoreEntry[];
    if (records.length > 0) folded.summary = foldSessionSummary(folded.summary, key, records);
  }
}

/** Returns the key in the first entry of a file, which is on the second line or soon after. */
async function readKey(path: string, session: string): Promise<Parts | undefined> {
  const file = await open(path);
  try {
    let text = '';
    while (text.length < HEAD_BYTES) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(4096), 0, 4096, text.length);
      if (bytesRead === 0) break;
      // The key is in ASCII, so decoding as Latin-1 is enough: each byte becomes one character.
      text += buffer.toString('latin1', 0, bytesRead);
      const lines = text.split('\n', LINES);
      for (const line of lines) {
        const entry = line.includes(`"${HEAD}"`) ? parsed(line) : undefined;
        if (isObject(entry) && entry.id === HEAD) return keyIn(entry, session);
      }
      if (lines.length === LINES) return undefined;
    }
    return undefined;
  } finally {
    await file.close();
  }
}
