// A connection to one daemon: calls, notifications, and answers to questions.

import { resolve } from 'node:path';

import { Daemon } from './daemon.js';
import { callSite, TreelinedError } from './errors.js';
import {
  MethodCalls,
  type Methods,
  type Notifications,
  PROTOCOL_VERSION,
} from './generated/protocol.js';
import type {
  AnswerEventParams,
  AskKind,
  CommandInvoked,
  ErrorObject,
  EventAnswer,
  InitializeParams,
  InitializeResult,
  OnFailure,
  RegisterCommandParams,
  RunCommandResult,
} from './generated/types.js';
import type { CallOptions } from './options.js';
import { findProgram } from './program.js';
import { Session } from './session.js';

/** The events before an operation that a client can answer. */
export type BeforeEventName =
  'session_before_tree' | 'session_before_fork' | 'session_before_compact';

/** The questions that a client can answer: the before events, and questions to the person who uses it. */
export type QuestionName = BeforeEventName | 'user_asked';

/**
 * Answers a question. Returning nothing is not an opinion, and dismisses a question to a person. `signal` aborts when
 * the question is over, so that a prompt can be closed. `extend` keeps the question open for that many milliseconds
 * from now, and returns the time that was granted.
 */
export type Answerer<N extends QuestionName> = (
  event: Notifications[N],
  signal: AbortSignal,
  extend: (ms: number) => Promise<number>,
) => EventAnswer | undefined | Promise<EventAnswer | undefined>;

/** The answerers by the names of their events. */
export type Answerers = { [N in QuestionName]?: Answerer<N> | undefined };

type Ran = RunCommandResult | string | undefined;

/**
 * Runs a command. Returns the output, or an object with `output` and `prompt`. An error makes the command fail with
 * its message. `signal` aborts when the run is over. `extend` is the same as for an `Answerer`.
 */
export type CommandRunner = (
  invoked: CommandInvoked,
  signal: AbortSignal,
  extend: (ms: number) => Promise<number>,
) => Ran | Promise<Ran>;

export interface ConnectOptions {
  /**
   * The daemon's program. Default: the first that exists of `TREELINED_BIN`, the program of the platform package, and
   * `treelined` on the `PATH`.
   */
  command?: string | undefined;
  /** Further arguments of the daemon. */
  args?: readonly string[] | undefined;
  /** The session directory. */
  sessionDir?: string | undefined;
  /** The summarizer that is used when no client gives a summary, such as `outline`. */
  summarizer?: string | undefined;
  /** The daemon's working directory. New sessions have the same one. */
  cwd?: string | undefined;
  /** The daemon's environment. Default: the environment of this process. */
  env?: NodeJS.ProcessEnv | undefined;
  /** Uses the daemon that all clients of the session directory share. Starts it if it does not run. */
  shared?: boolean | undefined;
  /** The socket of another shared daemon to use. */
  socket?: string | undefined;
  /** The name and version that `initialize` sends. */
  clientInfo?: { name: string; version?: string } | undefined;
  /**
   * The answerers by their events. The daemon waits for their answers. To set the answerers later with `answer`, pass
   * a list of the events.
   */
  answers?: Answerers | readonly QuestionName[] | undefined;
  /**
   * The kinds of questions that this client can show to a person. A client with a person also gets `user_notified`.
   * Default: all kinds if `answers` has `user_asked`, otherwise none.
   */
  ui?: readonly AskKind[] | undefined;
  /** Makes the daemon send `summary_delta` while it writes summaries. */
  summaryDeltas?: boolean | undefined;
  /** Makes the daemon send `progress` during long work. */
  progress?: boolean | undefined;
  /** Makes the daemon send each hit of a search as `search_hit` when it is found. */
  searchHits?: boolean | undefined;
  /** The notifications that the daemon must not send. Notifications that answerers need are sent anyway. */
  optOut?: readonly (keyof Notifications)[] | undefined;
  /**
   * The deadline in milliseconds of calls without their own deadline. Default: 30 s, and 11 minutes for calls that
   * wait for people and models.
   */
  timeoutMs?: number | undefined;
  /** Called with the daemon's log (stderr). */
  onLog?: ((text: string) => void) | undefined;
  /**
   * The answer before an operation if an answerer throws, if its answer is refused, or if this process dies: `cancel`
   * with the first line of the error, or `proceed`. Default: `cancel`.
   */
  onFailure?: OnFailure | undefined;
  /**
   * Called with errors of handlers and answerers. Default: an error of an answerer goes to `console.error`, since it
   * must not end a guard. An error of a handler is an uncaught exception.
   */
  onError?: ((error: unknown) => void) | undefined;
}

const TIMEOUT_MS = 30_000;

/** Longer than a question stays open, which is at most 10 minutes. */
const WAITING_TIMEOUT_MS = 660_000;

/** The longest time that a timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls that wait for people and models. */
const WAITING: ReadonlySet<string> = new Set<keyof Methods>([
  'archive_branch',
  'ask_user',
  'choose',
  'compact',
  'continue_session',
  'fork_session',
  'merge_branch',
  'navigate_tree',
  'pop',
  'run_command',
]);

const ASK_KINDS: readonly AskKind[] = ['select', 'confirm', 'input', 'editor'];

interface Pending {
  resolve: (result: unknown) => void;
  /** Rejects with any value: a thrown value, or the reason of a signal. */
  reject: (error: unknown) => void;
  /** Rejects with an error of the daemon or of the connection, and gives it the stack of the call. */
  fail: (error: TreelinedError) => void;
  method: string;
  signal: AbortSignal | undefined;
}

type Handler = (params: never) => unknown;

/** A message of the daemon: a response or a notification. */
interface Message {
  id?: number | null;
  method?: string;
  params?: { eventId?: string; timeoutMs?: number };
  result?: unknown;
  error?: ErrorObject;
}

/** Starts a daemon and sends `initialize`. Rejects with `disconnected` or `versionMismatch`. */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  return Client.start(options);
}

/** A connection to a daemon that this client started, with a function for each method. */
export class Client extends MethodCalls {
  readonly #daemon: Daemon;
  readonly #options: ConnectOptions;
  readonly #pending = new Map<number, Pending>();
  readonly #handlers = new Map<string, Set<Handler>>();
  readonly #answerers: Map<string, Answerer<never>>;
  readonly #commands = new Map<string, CommandRunner>();
  /** The events for which the daemon waits for an answer. */
  readonly #declared: readonly QuestionName[];
  /** The open questions by their event ids. */
  readonly #questions = new Map<string, AbortController>();
  #lastId = 0;
  /** The error of the end. If it is set, no more calls can be made. */
  #over: TreelinedError | undefined;
  #isDisconnected = false;
  /** Whether `closed` was read, so that the process must stay alive. */
  #isWatched = false;
  #server: InitializeResult | undefined;
  readonly #closed: PromiseWithEnd<TreelinedError>;

  private constructor(options: ConnectOptions) {
    super();
    this.#options = options;
    this.#closed = promiseWithEnd();
    const { answers = [], ui } = options;
    const given = isList(answers)
      ? []
      : Object.entries(answers).filter(([, answerer]) => answerer !== undefined);
    this.#answerers = new Map(given as [QuestionName, Answerer<never>][]);
    const names = isList(answers) ? answers : ([...this.#answerers.keys()] as QuestionName[]);
    this.#declared = ui?.length ? [...new Set(names).add('user_asked')] : names;
    const { args = [], sessionDir, summarizer, socket } = options;
    const { command, tried } = findProgram(options.command, options.env);
    this.#daemon = new Daemon({
      command,
      tried,
      args: [
        ...(sessionDir === undefined ? [] : ['--session-dir', sessionDir]),
        ...(summarizer === undefined ? [] : ['--summarizer', summarizer]),
        ...args,
        ...(options.shared || socket !== undefined ? ['connect', '--start'] : []),
        ...(socket === undefined ? [] : ['--socket', socket]),
      ],
      cwd: options.cwd,
      env: options.env,
      onLog: options.onLog,
      onLine: (line) => this.#receive(line),
      onEnd: (why) => this.#disconnect(why),
    });
  }

  /** See `connect`. */
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

  /** The daemon's answer to `initialize`. */
  get server(): InitializeResult {
    if (this.#server === undefined) throw new Error('not initialized');
    return this.#server;
  }

  /** The daemon's process id. */
  get pid(): number | undefined {
    return this.#daemon.pid;
  }

  /**
   * Resolves when the daemon has ended, with the error with which open calls have failed. Reading this property keeps
   * the process alive until then. Otherwise only waiting calls keep it alive.
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

  /** Returns the methods of this client, about this session unless a call names another. */
  session(sessionId: string): Session {
    return new Session(this, sessionId);
  }

  /** Calls `handler` with each notification of this name. Returns a function that removes the handler. */
  on<N extends keyof Notifications>(
    name: N,
    handler: (params: Notifications[N]) => unknown,
  ): () => void {
    const handlers = this.#handlers.get(name) ?? new Set();
    this.#handlers.set(name, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** Sets the answerer of an event. `answers` of `connect` must name the event, so that the daemon waits. */
  answer<N extends QuestionName>(name: N, answerer: Answerer<N>): void {
    if (!this.#declared.includes(name)) {
      throw new Error(
        `the daemon does not wait for answers to ${name}, since this client did not name it: use connect({ answers: { ${name}: answerer } })`,
      );
    }
    this.#answerers.set(name, answerer);
  }

  /**
   * Offers a command to other clients, until `unregisterCommand` or the end of this client. `run` is called for each
   * run of the command.
   */
  async offerCommand(
    params: RegisterCommandParams,
    run: CommandRunner,
    options?: CallOptions,
  ): Promise<void> {
    const { name } = params;
    const earlier = this.#commands.get(name);
    // The command may be run before the response arrives.
    this.#commands.set(name, run);
    try {
      await this.registerCommand(params, options);
    } catch (error) {
      this.#commands.delete(name);
      if (earlier) this.#commands.set(name, earlier);
      throw error;
    }
  }

  /**
   * Closes the daemon's stdin, and waits until the daemon has ended. The daemon first answers all requests that it
   * has accepted. After `timeoutMs` it is killed.
   */
  async close(timeoutMs = 10_000): Promise<void> {
    this.#over ??= new TreelinedError('the client is closed', 'disconnected');
    await this.#daemon.end(timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #initialize(): Promise<void> {
    const { clientInfo, optOut, summaryDeltas, progress, searchHits } = this.#options;
    const answers = this.#declared;
    const ui = this.#options.ui ?? (answers.includes('user_asked') ? ASK_KINDS : undefined);
    // Without these notifications the answerer would never be called, and the daemon would wait for it.
    const needed = new Set<string>(answers.length > 0 ? [...answers, 'event_resolved'] : []);
    const params: InitializeParams = {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: clientInfo ?? null,
      processId: process.pid,
      // The working directory of a shared daemon may be another one.
      cwd: resolve(this.#options.cwd ?? '.'),
      capabilities: {
        answers: Object.fromEntries(
          answers
            .filter((name) => name !== 'user_asked')
            .map((name) => [name, { onFailure: this.#onFailure }]),
        ),
        ...(ui && { ui: [...ui] }),
        ...(optOut && { optOut: optOut.filter((name) => !needed.has(name)) }),
        ...(summaryDeltas && { summaryDeltas: {} }),
        ...(progress && { progress: {} }),
        ...(searchHits && { searchHits: {} }),
      },
    };
    const server = (await this.#request('initialize', params, {})) as InitializeResult;
    if (server.protocolVersion !== PROTOCOL_VERSION) {
      throw new TreelinedError(
        `the daemon speaks protocol version ${server.protocolVersion}, this client speaks ${PROTOCOL_VERSION}`,
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

  /** The id comes first, so that the daemon finds it even in a message that is too large. */
  #send(message: { id?: number; method: string; params: object }): void {
    this.#daemon.write(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive(line: string): void {
    const message = parse(line);
    if (message === undefined) {
      const said = line.length > 200 ? `${line.slice(0, 200)}…` : line;
      const why = `the program is not a treelined daemon: it wrote ${JSON.stringify(said)}`;
      this.#disconnect(new TreelinedError(why, 'disconnected'));
      void this.#daemon.end(0);
      return;
    }
    if (message.method !== undefined) {
      this.#notified(message.method, message.params ?? {});
      return;
    }
    // A response to a call that has timed out is ignored.
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
    // Without `timeoutMs` the daemon does not wait for an answer.
    if (eventId !== undefined && timeoutMs) void this.#asked(name, eventId, params);
  }

  async #asked(name: string, eventId: string, event: object): Promise<void> {
    const question = new AbortController();
    this.#questions.set(eventId, question);
    const answer = await this.#opinion(name, eventId, event, question.signal);
    this.#questions.delete(eventId);
    if (question.signal.aborted) return;
    try {
      await this.answerEvent({ eventId, ...answer });
    } catch (error) {
      // Another client has answered first, the time is up, or the operation has ended.
      const late =
        error instanceof TreelinedError && /^(eventNotPending|disconnected)$/.test(error.kind);
      if (late) return;
      const refused = new Error(`the answer to ${name} was refused: ${firstLine(error)}`, {
        cause: error,
      });
      this.#reportAnswer(refused);
      // The daemon refused the answer. It gets another one, and a cancel stays a cancel.
      // The user's code may return anything.
      const given: unknown = answer.result;
      const isVeto =
        typeof given === 'object' && given !== null && 'cancel' in given && Boolean(given.cancel);
      const instead = isVeto ? { result: { cancel: true } } : this.#failed(name, refused);
      this.answerEvent({ eventId, ...instead }).catch(() => {});
    }
  }

  /** Calls the answerer. Returns its answer as params of `answer_event`. */
  async #opinion(
    name: string,
    eventId: string,
    event: object,
    signal: AbortSignal,
  ): Promise<Partial<AnswerEventParams>> {
    const command = name === 'command_invoked' ? (event as CommandInvoked).name : undefined;
    const answerer =
      command === undefined ? this.#answerers.get(name) : this.#commands.get(command);
    if (!answerer)
      return noOpinion(name, new Error('this client has no function for this command'));
    const extend = async (ms: number): Promise<number> =>
      (await this.answerEvent({ eventId, extendMs: ms })).timeoutMs ?? 0;
    try {
      const result: EventAnswer | string | undefined = await answerer(
        event as never,
        signal,
        extend,
      );
      if (typeof result === 'string') return { result: { output: result } };
      if (result === undefined && name === 'user_asked') return { result: { dismissed: true } };
      if (typeof result?.reason === 'string')
        return { result: { ...result, reason: cut(result.reason) } };
      return { result: result ?? {} };
    } catch (error) {
      // An answerer that fails gets an answer here, so that the daemon does not wait for it.
      if (!signal.aborted && command === undefined) this.#reportAnswer(error);
      return this.#failed(name, error);
    }
  }

  /** The answer for an answerer that has failed: a guard then does not consent. */
  #failed(name: string, why: unknown): Partial<AnswerEventParams> {
    if (!name.includes('_before_') || this.#onFailure === 'proceed') return noOpinion(name, why);
    return { result: { cancel: true, reason: cut(firstLine(why)) } };
  }

  get #onFailure(): OnFailure {
    return this.#options.onFailure ?? 'cancel';
  }

  #reportAnswer(error: unknown): void {
    const { onError } = this.#options;
    if (onError) onError(error);
    else console.error(error);
  }

  #report(error: unknown): void {
    const { onError } = this.#options;
    if (onError) onError(error);
    else
      queueMicrotask(() => {
        throw error;
      });
  }

  /** Ends the connection. Only the first error is kept. */
  #disconnect(why: TreelinedError): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.#over = why;
    for (const pending of [...this.#pending.values()]) pending.fail(why);
    for (const question of this.#questions.values()) question.abort();
    this.#closed.end(why);
  }
}

/** The answer that means no opinion. A command needs a result, so it fails. */
function noOpinion(name: string, why: unknown): Partial<AnswerEventParams> {
  if (name === 'command_invoked')
    return { error: why instanceof Error ? why.message : String(why) };
  return { result: name === 'user_asked' ? { dismissed: true } : {} };
}

/** The most characters in the reason of a cancel. */
const MOST_REASON = 500;

function cut(reason: string): string {
  return Array.from(reason).slice(0, MOST_REASON).join('');
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.trim().split(/[\r\n]/u, 1)[0] ?? '';
}

function isList(answers: ConnectOptions['answers']): answers is readonly QuestionName[] {
  return Array.isArray(answers);
}

/** Parses a line. Returns undefined if it is not JSON-RPC. */
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
