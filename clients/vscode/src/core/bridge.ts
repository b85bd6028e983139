// Carries the messages of the page in a webview over the connection of the window, so that both show the same leaf.
// The page uses a WebSocket object, which the extension implements: a webview cannot reach a real one if VS Code and
// the daemon run on another machine.

import { type Methods, TreelinedError } from 'treelined';
import type { Connection } from './connection.js';
import { problem } from './errors.js';

/** A message of the webview: it opens a socket, sends a text, or closes the socket. */
export interface FromPage {
  socket: number;
  what: 'open' | 'text' | 'close';
  text?: string;
}

export interface ToPage {
  socket: number;
  what: 'open' | 'text' | 'close';
  text?: string;
}

interface Request {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
}

/** Methods that would end or change the connection, which the page shares with the window. */
const OWN: readonly string[] = ['shutdown', 'watch_sessions', 'unwatch_sessions'];

export class Bridge {
  readonly #connection: Connection;
  readonly #post: (message: ToPage) => void;
  /** The open socket. A page has at most one. */
  #socket: number | undefined;
  readonly #running = new Map<number, AbortController>();
  /** The sessions that the page has opened, one element for each opening. */
  readonly #opened: string[] = [];
  readonly #stops: (() => void)[];

  constructor(connection: Connection, post: (message: ToPage) => void) {
    this.#connection = connection;
    this.#post = post;
    this.#stops = [
      connection.notified.on(({ name, params }) => {
        this.#say({ jsonrpc: '2.0', method: name, params });
      }),
      connection.ended.on(() => this.#close()),
    ];
  }

  /** Handles a message of the webview. */
  async receive({ socket, what, text }: FromPage): Promise<void> {
    if (what === 'open') {
      try {
        await this.#connection.client();
        this.#socket = socket;
        this.#post({ socket, what: 'open' });
      } catch {
        this.#post({ socket, what: 'close' });
      }
    } else if (socket !== this.#socket) return;
    else if (what === 'close') this.#forget();
    else await this.#answer(JSON.parse(text ?? '{}') as Request);
  }

  /** Closes the sessions that the page has opened. */
  dispose(): void {
    for (const stop of this.#stops) stop();
    this.#forget();
  }

  async #answer({ id, method, params = {} }: Request): Promise<void> {
    // The first message of a WebSocket is only the token.
    if (method === undefined) return;
    if (method === '$/cancel_request') {
      this.#running
        .get(Number(params.requestId ?? params.id))
        ?.abort(new DOMException('cancelled', 'AbortError'));
      return;
    }
    const abort = new AbortController();
    if (id !== undefined) this.#running.set(id, abort);
    try {
      const result = await this.#call(method, params, abort.signal);
      this.#say({ jsonrpc: '2.0', id, result });
    } catch (error) {
      this.#say({ jsonrpc: '2.0', id, error: wireError(error) });
    } finally {
      if (id !== undefined) this.#running.delete(id);
    }
  }

  async #call(
    method: string,
    params: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<unknown> {
    const client = await this.#connection.client();
    if (method === 'initialize') return client.server;
    // The window already watches the sessions, and its connection must not end.
    if (OWN.includes(method)) return {};
    const result: unknown = await client.call(method as keyof Methods, params, { signal });
    const { session } = (result ?? {}) as { session?: { sessionId?: string } };
    if (session?.sessionId !== undefined) this.#opened.push(session.sessionId);
    const at = method === 'close_session' ? this.#opened.indexOf(String(params.sessionId)) : -1;
    if (at !== -1) this.#opened.splice(at, 1);
    return result;
  }

  #say(message: object): void {
    if (this.#socket === undefined) return;
    this.#post({ socket: this.#socket, what: 'text', text: JSON.stringify(message) });
  }

  /** The daemon has ended. Its sessions are closed, and the page connects again. */
  #close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#opened.length = 0;
    if (socket !== undefined) this.#post({ socket, what: 'close' });
  }

  #forget(): void {
    this.#socket = undefined;
    for (const abort of this.#running.values())
      abort.abort(new DOMException('closed', 'AbortError'));
    for (const sessionId of this.#opened.splice(0)) {
      if (this.#connection.isRunning)
        void this.#connection.call('close_session', { sessionId }).catch(() => {});
    }
  }
}

/** The error in the form in which the daemon sends it. */
function wireError(error: unknown): object {
  if (error instanceof TreelinedError) {
    const { message, code = 0, kind, details, retryable } = error;
    return { code, message, data: { kind, details, retryable } };
  }
  const message = problem(error)?.text ?? 'cancelled';
  return { code: -32800, message, data: { kind: 'cancelled', retryable: false } };
}
