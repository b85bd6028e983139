// A conversation with one daemon: calls, notifications, questions and their answers.

import { Daemon } from './daemon.js';
import { callSite, TreelinedError } from './errors.js';
import {
  MethodCalls,
  type Methods,
  type Notifications,
  PROTOCOL_VERSION,
} from './generated/protocol.js';
import type {
  ErrorObject,
  EventAnswer,
  InitializeParams,
  InitializeResult,
} from './generated/types.js';

/** The questions that a client can answer. */
export type BeforeEventName =
  'session_before_tree' | 'session_before_fork' | 'session_before_compact';

/**
 * Answers a question; nothing returned is no opinion. `signal` aborts when the question is over:
 * prompts can be dismissed. `extend` asks for that many milliseconds from now, and tells how many
 * are left.
 */
export type Answerer<N extends BeforeEventName> = (
  event: Notifications[N],
  signal: AbortSignal,
  extend: (ms: number) => Promise<number>,
) => EventAnswer | undefined | Promise<EventAnswer | undefined>;

/** Answerers by the question that they answer. */
export type Answerers = { [N in BeforeEventName]?: Answerer<N> | undefined };

export interface CallOptions {
  /** Milliseconds until the call fails with `timeout`; `Infinity` for never. */
  timeoutMs?: number | undefined;
  /**
   * Cancels the call. The daemon decides: a call that waits fails with the signal's reason, a
   * navigation answers `cancelled`, and what was done already comes back as usual.
   */
  signal?: AbortSignal | undefined;
}

export interface ConnectOptions {
  /** The daemon; `treelined` if left out. */
  command?: string | undefined;
  /** More arguments for it. */
  args?: readonly string[] | undefined;
  /** Where sessions are kept. */
  sessionDir?: string | undefined;
  /** Who writes summaries when no client does, such as `outline`. */
  summarizer?: string | undefined;
  /** The daemon's working directory, and so that of new sessions. */
  cwd?: string | undefined;
  /** The daemon's environment; this process's own if left out. */
  env?: NodeJS.ProcessEnv | undefined;
  /** Who is calling. */
  clientInfo?: { name: string; version?: string } | undefined;
  /**
   * Who answers which question: the daemon waits for their answers. Where the answerers exist only later,
   * a list of the questions, and `answer` for each.
   */
  answers?: Answerers | readonly BeforeEventName[] | undefined;
  /** Send `summary_delta` while summaries are written. */
  summaryDeltas?: boolean | undefined;
  /** Send `progress` while long work goes on. */
  progress?: boolean | undefined;
  /** Notifications not to send. What answering takes is sent all the same. */
  optOut?: readonly (keyof Notifications)[] | undefined;
  /**
   * Milliseconds for calls that name no timeout of their own. If left out, 30 s, and 11 minutes for
   * those that wait for people and models.
   */
  timeoutMs?: number | undefined;
  /** What the daemon logs (stderr). */
  onLog?: ((text: string) => void) | undefined;
  /** Errors thrown by handlers and answerers; if left out they are uncaught exceptions. */
  onError?: ((error: unknown) => void) | undefined;
}

const TIMEOUT_MS = 30_000;

/** Ten minutes is the longest that a question can stay open. */
const WAITING_TIMEOUT_MS = 660_000;

/** The longest that a timer can run. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls that wait for people and models. */
const WAITING: ReadonlySet<string> = new Set<keyof Methods>([
  'compact',
  'fork_session',
  'merge_branch',
  'navigate_tree',
  'pop',
]);

interface Pending {
  resolve: (result: unknown) => void;
  /** With what was thrown, or the reason of a signal: any value. */
  reject: (error: unknown) => void;
  /** Rejects with a failure of the daemon's or the connection's, as seen from the call. */
  fail: (error: TreelinedError) => void;
  method: string;
  signal: AbortSignal | undefined;
}

type Handler = (params: never) => unknown;

/** What the daemon says: a response or a notification. */
interface Message {
  id?: number | null;
  method?: string;
  params?: { eventId?: string; timeoutMs?: number };
  result?: unknown;
  error?: ErrorObject;
}

/** Starts a daemon and introduces itself. Fails with `disconnected` or `versionMismatch`. */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  return Client.start(options);
}

/** A connection to a daemon of its own, with a function for each method. */
export class Client extends MethodCalls {
  readonly #daemon: Daemon;
  readonly #options: ConnectOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #handlers = new Map<string, Set<Handler>>();
  readonly #answerers: Map<string, Answerer<never>>;
  /** The questions that the daemon waits for. */
  readonly #declared: readonly BeforeEventName[];
  /** Questions that are being answered, by event id. */
  readonly #questions = new Map<string, AbortController>();
  #lastId = 0;
  /** Why no more calls are made. */
  #over: TreelinedError | undefined;
  #isDisconnected = false;
  /** Somebody waits for the end. */
  #isWatched = false;
  #server: InitializeResult | undefined;
  readonly #closed: PromiseWithEnd<TreelinedError>;

  private constructor(options: ConnectOptions) {
    super();
    this.#options = options;
    this.#closed = promiseWithEnd();
    const { answers = [] } = options;
    if (isList(answers)) {
      this.#answerers = new Map();
      this.#declared = answers;
    } else {
      const given = Object.entries(answers).filter(([, answerer]) => answerer !== undefined);
      this.#answerers = new Map(given as [BeforeEventName, Answerer<never>][]);
      this.#declared = [...this.#answerers.keys()] as BeforeEventName[];
    }
    const { command = 'treelined', args = [], sessionDir, summarizer } = options;
    this.#daemon = new Daemon({
      command,
      args: [
        ...(sessionDir === undefined ? [] : ['--session-dir', sessionDir]),
        ...(summarizer === undefined ? [] : ['--summarizer', summarizer]),
        ...args,
      ],
      cwd: options.cwd,
      env: options.env,
      onLog: options.onLog,
      onLine: (line) => this.#receive(line),
      onEnd: (why) => this.#disconnect(why),
    });
  }

  /** As `connect`. */
  static async start(options: ConnectOptions): Promise<Client> {
    const client = new Client(options);
    try {
      await client.#initialize();
    } catch (error) {
      await client.close();
      throw error;
    }
    return client;
  }

  /** What the daemon told about itself. */
  get server(): InitializeResult {
    if (this.#server === undefined) throw new Error('not initialized');
    return this.#server;
  }

  /** The daemon's process. */
  get pid(): number | undefined {
    return this.#daemon.pid;
  }

  /**
   * Resolves when the daemon is gone, with the error that open calls failed with. Keeps the process
   * alive until then; otherwise only calls that wait do.
   */
  get closed(): Promise<TreelinedError> {
    this.#isWatched = true;
    this.#daemon.ref();
    return this.#closed.promise;
  }

  /** Calls a method by its name in the protocol. */
  async call<M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
    options: CallOptions = {},
  ): Promise<Methods[M]['result']> {
    const result: unknown = await this.#request(method, params, options);
    return result as Methods[M]['result'];
  }

  /** Calls `handler` for each notification of that name. What comes back ends that. */
  on<N extends keyof Notifications>(
    name: N,
    handler: (params: Notifications[N]) => unknown,
  ): () => void {
    const handlers = this.#handlers.get(name) ?? new Set();
    this.#handlers.set(name, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** From here on, answers questions of that name, for which `answers` of `connect` makes the daemon wait. */
  answer<N extends BeforeEventName>(name: N, answerer: Answerer<N>): void {
    if (!this.#declared.includes(name)) {
      throw new Error(
        `the daemon does not wait for answers: connect({ answers: { ${name}: answerer } }) makes it`,
      );
    }
    this.#answerers.set(name, answerer);
  }

  /**
   * Ends the daemon's input and waits until it is gone. It answers what it has accepted first. After
   * `timeoutMs` it is killed.
   */
  async close(timeoutMs = 10_000): Promise<void> {
    this.#over ??= new TreelinedError('the client is closed', 'disconnected');
    await this.#daemon.end(timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #initialize(): Promise<void> {
    const { clientInfo, optOut, summaryDeltas, progress } = this.#options;
    const answers = this.#declared;
    // Without these the daemon would wait, and nobody know for what.
    const needed = new Set<string>(answers.length > 0 ? [...answers, 'event_resolved'] : []);
    const params: InitializeParams = {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: clientInfo ?? null,
      processId: process.pid,
      capabilities: {
        answers: Object.fromEntries(answers.map((name) => [name, {}])),
        ...(optOut && { optOut: optOut.filter((name) => !needed.has(name)) }),
        ...(summaryDeltas && { summaryDeltas: {} }),
        ...(progress && { progress: {} }),
      },
    };
    const server = (await this.#request('initialize', params, {})) as InitializeResult;
    if (server.protocolVersion !== PROTOCOL_VERSION) {
      throw new TreelinedError(
        `the daemon speaks protocol version ${server.protocolVersion}, this client ${PROTOCOL_VERSION}`,
        'versionMismatch',
        { expected: PROTOCOL_VERSION, spoken: server.protocolVersion },
      );
    }
    this.#server = server;
  }

  #request(method: string, params: object, options: CallOptions): Promise<unknown> {
    const { signal } = options;
    const usual = WAITING.has(method) ? WAITING_TIMEOUT_MS : TIMEOUT_MS;
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? usual;
    const site = callSite();
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      if (this.#over) {
        reject(this.#over.at(site));
        return;
      }
      const id = ++this.#lastId;
      const cancel = () => this.#send({ method: '$/cancel_request', params: { requestId: id } });
      const timer =
        timeoutMs > MAX_TIMER_MS
          ? undefined
          : setTimeout(() => {
              cancel();
              const message = `${method}: no answer within ${timeoutMs} ms`;
              pending.fail(new TreelinedError(message, 'timeout', { timeoutMs }, true));
            }, timeoutMs);
      const settle = () => {
        this.#pending.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
        if (this.#pending.size === 0 && !this.#isWatched) this.#daemon.unref();
      };
      const pending: Pending = {
        method,
        signal,
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
        fail: (error) => pending.reject(error.at(site)),
      };
      signal?.addEventListener('abort', cancel, { once: true });
      this.#pending.set(id, pending);
      this.#daemon.ref();
      this.#send({ id, method, params });
    });
  }

  /** The id comes first: that is where the daemon looks for it in a message that is too large. */
  #send(message: { id?: number; method: string; params: object }): void {
    this.#daemon.write(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive(line: string): void {
    const message = parse(line);
    if (message === undefined) {
      const said = line.length > 200 ? `${line.slice(0, 200)}…` : line;
      const why = `this is no treelined daemon: it said ${JSON.stringify(said)}`;
      this.#disconnect(new TreelinedError(why, 'disconnected'));
      void this.#daemon.end(0);
      return;
    }
    if (message.method !== undefined) {
      this.#notified(message.method, message.params ?? {});
      return;
    }
    // What timed out here may be answered later.
    const pending = this.#pending.get(message.id ?? 0);
    if (pending === undefined) return;
    if (message.error === undefined) {
      pending.resolve(message.result);
    } else if (message.error.data.kind === 'cancelled' && pending.signal?.aborted) {
      pending.reject(pending.signal.reason);
    } else {
      pending.fail(TreelinedError.answered(pending.method, message.error));
    }
  }

  #notified(name: string, params: { eventId?: string; timeoutMs?: number }): void {
    const { eventId, timeoutMs } = params;
    if (name === 'event_resolved' && eventId !== undefined) this.#questions.get(eventId)?.abort();
    for (const handler of this.#handlers.get(name) ?? []) {
      const handled = async () => handler(params as never);
      handled().catch((error: unknown) => this.#report(error));
    }
    // Without `timeoutMs` nobody waits: it is told, not asked.
    if (eventId !== undefined && timeoutMs) void this.#asked(name, eventId, params);
  }

  async #asked(name: string, eventId: string, event: object): Promise<void> {
    const answerer = this.#answerers.get(name);
    const question = new AbortController();
    this.#questions.set(eventId, question);
    const extend = async (ms: number): Promise<number> =>
      (await this.answerEvent({ eventId, extendMs: ms })).timeoutMs ?? 0;
    let result: EventAnswer = {};
    try {
      result = (await answerer?.(event as never, question.signal, extend)) ?? {};
    } catch (error) {
      // The daemon must not wait for an answerer that has failed: it has no opinion.
      if (!question.signal.aborted) this.#report(error);
    }
    this.#questions.delete(eventId);
    if (question.signal.aborted) return;
    try {
      await this.answerEvent({ eventId, result });
    } catch (error) {
      // Somebody else, the deadline or the end was faster.
      const late =
        error instanceof TreelinedError && /^(eventNotPending|disconnected)$/.test(error.kind);
      if (late) return;
      this.#report(error);
      // The daemon must not wait for an answer it cannot take.
      if (error instanceof TreelinedError && error.is('invalidParams'))
        this.answerEvent({ eventId, result: {} }).catch(() => {});
    }
  }

  #report(error: unknown): void {
    const { onError } = this.#options;
    if (onError) onError(error);
    else
      queueMicrotask(() => {
        throw error;
      });
  }

  /** The first reason counts. */
  #disconnect(why: TreelinedError): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.#over = why;
    for (const pending of [...this.#pending.values()]) pending.fail(why);
    for (const question of this.#questions.values()) question.abort();
    this.#closed.end(why);
  }
}

function isList(answers: ConnectOptions['answers']): answers is readonly BeforeEventName[] {
  return Array.isArray(answers);
}

/** Undefined if it is not JSON-RPC. */
function parse(line: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(line);
    const isMessage = typeof message === 'object' && message !== null && 'jsonrpc' in message;
    return isMessage ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}

interface PromiseWithEnd<T> {
  promise: Promise<T>;
  end: (value: T) => void;
}

function promiseWithEnd<T>(): PromiseWithEnd<T> {
  let end: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    end = resolve;
  });
  return { promise, end };
}
