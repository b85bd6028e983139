// An open session. It survives the end of the daemon: the next call opens it again with a new daemon.

import type {
  CallOptions,
  Client,
  Diagnostic,
  Methods,
  OpenSessionParams,
  SessionInfo,
} from 'treelined';
import type { Connection, Note } from './connection.js';
import { Emitter } from './emitter.js';
import { sessionTitle } from './sessions.js';

/** Methods about a session, called without `sessionId`. */
type SessionMethod = {
  [M in keyof Methods]: Methods[M]['params'] extends { sessionId?: string | null } ? M : never;
}[keyof Methods];

type Params<M extends SessionMethod> = Omit<Methods[M]['params'], 'sessionId'>;

/** An event of a session. */
export type SessionEvent =
  /** The rows, the leaf or the name have changed. */
  | { what: 'changed' }
  | { what: 'delta'; navigationId: string; index: number; delta: string }
  | { what: 'damaged'; kinds: string[] }
  /** The daemon has ended, or another program has closed or deleted the session. */
  | { what: 'closed' };

export class Session {
  readonly #connection: Connection;
  /** The client that has the session open. */
  #openFor: Client | undefined;
  #opening: Promise<Client> | undefined;
  readonly #stops: (() => void)[];
  #info: SessionInfo;
  /** The leaf of the file, if other programs have moved it to another position. */
  othersLeafId: string | null | undefined;
  /** The number of turns at `othersLeafId`, if the file opens beside its newest entries. */
  newerTurns: number | undefined;
  readonly events = new Emitter<SessionEvent>();

  private constructor(connection: Connection, client: Client, info: SessionInfo) {
    this.#connection = connection;
    this.#openFor = client;
    this.#info = info;
    this.#stops = [
      connection.notified.on((note) => this.#follow(note)),
      connection.ended.on(() => this.#closed()),
      // With a new daemon too, the session must report the changes of other programs.
      connection.started.on(() => void this.client().catch(() => {})),
    ];
  }

  /** Opens a session by its id, or by the path of its file. */
  static async open(connection: Connection, at: OpenSessionParams): Promise<Session> {
    const client = await connection.client();
    const { session, diagnostics } = await client.openSession(at);
    const opened = new Session(connection, client, session);
    opened.#warn(diagnostics);
    return opened;
  }

  /** Makes a session and its file at once, so that the session survives the end of the daemon. */
  static async create(
    connection: Connection,
    params: { name?: string; cwd?: string },
  ): Promise<Session> {
    const client = await connection.client();
    const { session } = await client.createSession({ ...params, write: 'now' });
    return new Session(connection, client, session);
  }

  /** Makes an object for a session that the daemon has already opened, such as a fork. */
  static async adopt(connection: Connection, info: SessionInfo): Promise<Session> {
    return new Session(connection, await connection.client(), info);
  }

  get id(): string {
    return this.#info.sessionId;
  }

  /** The path of its file. A session in memory has none. */
  get path(): string | undefined {
    return this.#info.path ?? undefined;
  }

  get cwd(): string {
    return this.#info.cwd;
  }

  get leafId(): string | null {
    return this.#info.leafId;
  }

  get isReadOnly(): boolean {
    return this.#info.readOnly;
  }

  /** The name, or the first message of the user, or the folder and the end of the id. */
  get title(): string {
    return sessionTitle(this.#info);
  }

  /** Returns the client after the session is open for it. */
  async client(): Promise<Client> {
    const client = await this.#connection.client();
    if (this.#openFor === client) return client;
    this.#opening ??= this.#reopen(client).finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** Calls a method about this session. */
  async call<M extends SessionMethod>(
    method: M,
    params: Params<M>,
    options?: CallOptions,
  ): Promise<Methods[M]['result']> {
    const client = await this.client();
    const all = { ...params, sessionId: this.id } as unknown as Methods[M]['params'];
    return client.call(method, all, options);
  }

  /** Closes the session if the daemon runs. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    const client = this.#openFor;
    this.#openFor = undefined;
    await client?.closeSession({ sessionId: this.id }).catch(() => {});
  }

  async #reopen(client: Client): Promise<Client> {
    const { path, sessionId } = this.#info;
    const { session, diagnostics } = await client.openSession(path ? { path } : { sessionId });
    this.#info = session;
    this.#openFor = client;
    this.othersLeafId = undefined;
    this.newerTurns = undefined;
    this.#warn(diagnostics);
    this.events.fire({ what: 'changed' });
    return client;
  }

  #closed(): void {
    if (this.#openFor === undefined) return;
    this.#openFor = undefined;
    this.events.fire({ what: 'closed' });
  }

  #warn(diagnostics: Diagnostic[]): void {
    const beside = diagnostics.find(({ kind }) => kind === 'leafBesideNewest');
    if (beside !== undefined) {
      this.othersLeafId = beside.newestTipId;
      this.newerTurns = beside.newerTurns;
    }
    const damage = diagnostics.filter((found) => found !== beside);
    const kinds = [...new Set(damage.map(({ kind }) => kind))];
    if (kinds.length > 0) this.events.fire({ what: 'damaged', kinds });
  }

  #follow({ name, params }: Note): void {
    if (!('sessionId' in params) || params.sessionId !== this.id) return;
    switch (name) {
      case 'entries_appended': {
        const { origin, leafId, fileLeafId } = params;
        this.#info.leafId = leafId;
        // Entries of other programs move only the leaf of the file, not the leaf of this daemon.
        this.othersLeafId = origin === 'other' && fileLeafId !== leafId ? fileLeafId : undefined;
        this.newerTurns = undefined;
        this.#info.firstMessage = params.firstMessage ?? this.#info.firstMessage;
        break;
      }
      case 'session_tree':
        this.#info.leafId = params.newLeafId;
        this.othersLeafId = undefined;
        this.newerTurns = undefined;
        break;
      case 'session_info_changed':
        if (params.name === null) delete this.#info.name;
        else this.#info.name = params.name;
        break;
      case 'summary_delta': {
        const { navigationId, index, delta } = params;
        this.events.fire({ what: 'delta', navigationId, index, delta });
        return;
      }
      case 'diagnostics':
        this.#warn(params.diagnostics);
        return;
      case 'session_closed':
        this.#closed();
        return;
      case 'branches_changed':
      case 'session_compact':
      case 'session_reordered':
      case 'events_lost':
        break;
      default:
        return;
    }
    this.events.fire({ what: 'changed' });
  }
}
