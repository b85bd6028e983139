// One session, which has the records of one key.

import { existsSync } from 'node:fs';

import { type Client, type Methods, TreelinedError } from 'treelined';

import { asText, entryOf, isDeep, recordOf } from './entries.js';
import {
  entryId,
  HEAD,
  HEAD_TYPE,
  isObject,
  type Json,
  keyIn,
  type Parts,
  sessionOf,
  textOf,
} from './keys.js';
import { Turn } from './turn.js';

/** The most bytes of a page of entries. */
const PAGE = 8 << 20;
const ATTEMPTS = 8;

/** The session with this id belongs to another key. */
export class KeyTaken extends Error {
  override readonly name = 'KeyTaken';
}

type Durability = NonNullable<Methods['open_session']['params']['durability']>;

/** The options for opening a session. */
export interface OpenOptions {
  durability?: Durability;
}

/** Whether the error comes from the daemon and has one of these kinds. */
export function isKind(error: unknown, ...kinds: string[]): error is TreelinedError {
  return error instanceof TreelinedError && kinds.includes(error.kind);
}

/** An open session. */
export class Session {
  turn = new Turn();
  /** The number of records that were appended since the summary was stored. */
  appended = 0;

  constructor(
    readonly client: Client,
    readonly parts: Parts,
    readonly id: string,
    readonly path: string | undefined,
    public isNew = false,
  ) {}

  /** Opens the session of a key; undefined if there is none. Throws `KeyTaken`. */
  static async open(
    client: Client,
    parts: Parts,
    options: OpenOptions,
  ): Promise<Session | undefined> {
    const id = sessionOf(parts);
    let path: string | undefined;
    try {
      path = (await client.openSession({ sessionId: id, ...options })).session.path;
    } catch (error) {
      if (isKind(error, 'sessionNotFound', 'sessionDeleted')) return undefined;
      throw error;
    }
    const session = new Session(client, parts, id, path);
    const head = await session.entry(HEAD);
    const key = keyIn(head ?? {}, id);
    if (key === undefined || textOf(key) !== textOf(parts)) {
      await session.close();
      throw new KeyTaken(`the session ${id} is not that of the key ${textOf(parts)}`);
    }
    return session;
  }

  /** Opens a new session. Its file is written with the first records. */
  static async create(
    client: Client,
    parts: Parts,
    records: readonly Json[],
    options: OpenOptions,
  ): Promise<Session> {
    const id = sessionOf(parts);
    const [project, main, subpath] = parts;
    const cwd = first(records, (record) => record.cwd);
    const call = first(records, (record) => record.toolUseId);
    const source = first(records, ({ forkedFrom }) => isObject(forkedFrom) && forkedFrom.sessionId);
    const { session } = await client.createSession({
      sessionId: id,
      write: 'first-entry',
      ...options,
      ...(cwd === undefined ? {} : { cwd }),
      ...(subpath === undefined
        ? source !== undefined && { parentSession: sessionOf([project, source]) }
        : {
            spawnedBy: {
              sessionId: sessionOf([project, main]),
              ...(call === undefined ? {} : { toolCallId: call }),
            },
          }),
    });
    return new Session(client, parts, id, session.path, true);
  }

  /** Whether the file exists. Another process may have deleted it. */
  isThere(): boolean {
    return this.path === undefined || existsSync(this.path);
  }

  /** Closes the session in the daemon. */
  async close(): Promise<void> {
    try {
      await this.client.closeSession({ sessionId: this.id });
    } catch (error) {
      if (!(error instanceof TreelinedError)) throw error;
    }
  }

  /**
   * Yields the entries in file order, page by page. `known` is the number of entries up to `since`. If the file has
   * another number of entries there, as when those of another machine have come among them, it fails with
   * `treeChanged`.
   */
  async *pages(since?: string, known = 0): AsyncGenerator<Json[]> {
    yield* this.#pages({}, since, known);
  }

  /** Yields the custom entries of one type. */
  async *custom(customType: string): AsyncGenerator<Json[]> {
    yield* this.#pages({ customType });
  }

  async *#pages(
    which: { customType?: string },
    since?: string,
    known?: number,
  ): AsyncGenerator<Json[]> {
    for (;;) {
      const count = known === undefined ? {} : { known };
      const after = since === undefined ? {} : { since, ...count };
      const params = { sessionId: this.id, maxBytes: PAGE, ...which, ...after };
      const page = await this.client.getEntries(params);
      const entries = page.entries as unknown as Json[];
      const last = entries.at(-1);
      if (last === undefined) return;
      since = last.id as string;
      if (known !== undefined) known += entries.length;
      yield entries;
      if (page.nextCursor === undefined) return;
    }
  }

  /** Returns the records of these entries. The entries must not be used afterwards. */
  records(entries: readonly Json[]): Json[] {
    return entries.flatMap((entry): Json[] => {
      const record = recordOf(entry, this.parts[1]);
      return record === undefined ? [] : [record];
    });
  }

  /** Appends all of the records or none. Records whose `uuid` is already stored are left out. */
  async append(records: readonly Json[]): Promise<void> {
    const batch = new Batch(this, once(records));
    for (let attempt = 1; batch.hasRecords(); attempt++) {
      try {
        await this.client.call('append_entries', batch.params());
        this.isNew = false;
        this.turn = batch.turn;
        this.appended += batch.records.length;
        return;
      } catch (error) {
        if (attempt === ATTEMPTS || !(await batch.mend(error))) throw error;
      }
    }
  }

  /** Returns the entry with this id, if there is one. */
  async entry(id: string): Promise<Json | undefined> {
    try {
      const found = await this.client.getEntry({ sessionId: this.id, entryId: id });
      return found.entry;
    } catch (error) {
      if (isKind(error, 'entryNotFound')) return undefined;
      throw error;
    }
  }
}

/** The records of one append. */
class Batch {
  readonly #unknown = new Set<string>();
  #isAsText = false;
  turn: Turn;

  constructor(
    readonly session: Session,
    public records: Json[],
  ) {
    this.turn = session.turn;
  }

  hasRecords(): boolean {
    return this.records.length > 0;
  }

  params(): Methods['append_entries']['params'] {
    const { session } = this;
    this.turn = session.turn.copy();
    const entries: Json[] = [];
    if (session.isNew) {
      const data = { key: textOf(session.parts) };
      entries.push({ type: 'custom', id: HEAD, customType: HEAD_TYPE, data });
    }
    for (const record of this.records) {
      const entry = entryOf(record, session.parts[1], this.turn, this.#unknown);
      entries.push(this.#isAsText && isDeep(record) ? asText(entry, record) : entry);
    }
    return { sessionId: session.id, entries } as unknown as Methods['append_entries']['params'];
  }

  /** Changes the batch so that this error does not occur again. Returns whether that was possible. */
  async mend(error: unknown): Promise<boolean> {
    if (isKind(error, 'entryNotFound') && this.#unknown.size === 0) {
      // The parent was never appended, so its child follows the last written record.
      const names = new Set<unknown>(this.session.isNew ? [HEAD] : []);
      const unknown: string[] = [];
      const { entries } = this.params();
      for (const { id, parentId } of entries) {
        if (typeof parentId === 'string' && !names.has(parentId) && !(await this.#has(parentId))) {
          unknown.push(parentId);
        }
        names.add(id);
      }
      for (const id of unknown) this.#unknown.add(id);
      return unknown.length > 0;
    }
    if (isKind(error, 'duplicateEntryId')) {
      // Stored records do not change, even if a new record has other content.
      const kept: Json[] = [];
      for (const record of this.records) {
        const name = entryId(record.uuid);
        if (name === undefined || !(await this.#has(name))) kept.push(record);
      }
      const isLess = kept.length < this.records.length;
      this.records = kept;
      return isLess;
    }
    if (isKind(error, 'entryInvalid') && !this.#isAsText) {
      this.#isAsText = true;
      return this.records.some(isDeep);
    }
    return false;
  }

  async #has(id: string): Promise<boolean> {
    return !this.session.isNew && (await this.session.entry(id)) !== undefined;
  }
}

/** Returns the first text in the records that is not empty. */
function first(records: readonly Json[], text: (record: Json) => unknown): string | undefined {
  return records.map(text).find((value) => typeof value === 'string' && value !== '') as
    string | undefined;
}

/** Returns the first record of each `uuid`, and all records without a `uuid`. */
function once(records: readonly Json[]): Json[] {
  const seen = new Set<string>();
  return records.filter((record) => {
    const name = entryId(record.uuid);
    const isNew = name === undefined || !seen.has(name);
    if (name !== undefined) seen.add(name);
    return isNew;
  });
}
