// The connection of one window to its daemon. The first call makes it, and makes it again after the daemon has ended.

import {
  type AskKind,
  type CallOptions,
  type Client,
  connect,
  type ConnectOptions,
  type EventAnswer,
  type Methods,
  type Notifications,
  TreelinedError,
  type UserAsked,
} from 'treelined';
import { Emitter } from './emitter.js';
import { ExtensionError } from './errors.js';

/** A notification that the extension follows. */
export type Note = {
  [N in keyof Notifications]: { name: N; params: Notifications[N] };
}[keyof Notifications];

/** The options of the daemon. `command` is its program. */
export type Start = Pick<
  ConnectOptions,
  | 'command'
  | 'args'
  | 'cwd'
  | 'env'
  | 'sessionDir'
  | 'shared'
  | 'socket'
  | 'summarizer'
  | 'timeoutMs'
>;

/** The services of the window for its connection. */
export interface Host {
  /** Whether the workspace is trusted, so that programs may be started. */
  isTrusted(): boolean;
  /** Returns the options for a start. It is called before each start, so that changed settings take effect. */
  start(): Start;
  version: string;
  log(text: string): void;
  /** Asks the person. Undefined dismisses the question. */
  ask(
    question: UserAsked,
    signal: AbortSignal,
    extend: (ms: number) => Promise<number>,
  ): Promise<EventAnswer | undefined>;
}

/** The notifications that a window uses. */
const FOLLOWED = [
  'branches_changed',
  'diagnostics',
  'entries_appended',
  'events_lost',
  'progress',
  'session_closed',
  'session_compact',
  'session_info_changed',
  'session_reordered',
  'session_tree',
  'sessions_changed',
  'summary_delta',
  'turn_requested',
  'user_notified',
] as const satisfies (keyof Notifications)[];

const KINDS: readonly AskKind[] = ['select', 'confirm', 'input', 'editor'];

/** If the daemon ran for at least this time, in milliseconds, it is started again as soon as it ends. */
const STEADY_MS = 5000;

export class Connection {
  readonly #host: Host;
  /** The client, or the promise of one that is being started. */
  #client: Promise<Client> | undefined;
  #isDisposed = false;
  /** Fires with each notification of the daemon. */
  readonly notified = new Emitter<Note>();
  /** Fires when the daemon has ended. Without an error the end was expected. */
  readonly ended = new Emitter<TreelinedError | undefined>();
  /** Fires when the daemon was started. */
  readonly started = new Emitter<Client>();

  constructor(host: Host) {
    this.#host = host;
  }

  get isRunning(): boolean {
    return this.#client !== undefined;
  }

  /** Returns the client. Starts the daemon if it does not run. */
  async client(): Promise<Client> {
    if (!this.#host.isTrusted()) {
      throw new ExtensionError(
        'untrusted',
        'this folder is not trusted, so that nothing is started',
      );
    }
    if (this.#isDisposed) throw new TreelinedError('the window is closing', 'disconnected');
    if (this.#client === undefined) {
      const client = this.#connect();
      this.#client = client;
      client.catch(() => {
        if (this.#client === client) this.#client = undefined;
      });
    }
    return this.#client;
  }

  /** Calls a method. If the daemon does not run, starts it first. */
  async call<M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
    options?: CallOptions,
  ): Promise<Methods[M]['result']> {
    const client = await this.client();
    return client.call(method, params, options);
  }

  /** Ends the daemon of this window, or disconnects from a shared one. The next call connects again. */
  async stop(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    if (client === undefined) return;
    this.ended.fire(undefined);
    await client.close();
  }

  async dispose(): Promise<void> {
    this.#isDisposed = true;
    await this.stop();
  }

  async #connect(): Promise<Client> {
    const { host, options } = { host: this.#host, options: this.#host.start() };
    const client = await connect({
      ...options,
      clientInfo: { name: 'vscode', version: host.version },
      answers: {
        user_asked: (question, signal, extend) => host.ask(question, signal, extend),
      },
      ui: KINDS,
      summaryDeltas: true,
      progress: true,
      onLog: (text) => host.log(text),
      onError: (error) => host.log(`${String(error)}\n`),
    });
    for (const name of FOLLOWED) {
      client.on(name, (params) => this.notified.fire({ name, params } as Note));
    }
    const since = Date.now();
    void client.closed.then((why) => this.#over(client, why, Date.now() - since));
    this.started.fire(client);
    return client;
  }

  async #over(client: Client, why: TreelinedError, livedMs: number): Promise<void> {
    // If the client was stopped before, another client may be in use now.
    if ((await this.#client?.catch(() => undefined)) !== client) return;
    this.#client = undefined;
    this.#host.log(`${why.message}\n`);
    this.ended.fire(why);
    // A new daemon continues to report entries of other programs. If the daemon ended soon after its start, only a
    // command starts it again.
    if (livedMs >= STEADY_MS && !this.#isDisposed) await this.client().catch(() => {});
  }
}
