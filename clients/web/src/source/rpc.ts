/** JSON-RPC over a WebSocket that connects again by itself. */

export class RpcError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly details: unknown,
  ) {
    super(message);
  }
}

export type LinkState = 'connecting' | 'open' | 'lost' | 'refused';

export interface LinkObserver {
  /** The handshake was sent. Requests may be sent before its answer. */
  introduced(): void;
  /** A new connection has completed its handshake. */
  opened(): void;
  stateChanged(): void;
  notified(method: string, params: Record<string, unknown>): void;
}

interface Call {
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { message?: string; data?: { kind?: string; details?: unknown } };
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Called with the id of the request, which also names its progress. */
  token?: (id: number) => void;
}

/** The longest pause between two attempts to connect, in milliseconds. */
const LONGEST_WAIT = 5000;

interface InitializeResult {
  capabilities: { summarizer: string | null };
}

export class Link {
  state: LinkState = 'connecting';
  /** The time of the next attempt, in milliseconds of the clock. */
  nextAttempt: number | undefined;
  /** Whether this page is asked before moves, compactions and forks. */
  answers = false;
  /** Whether the daemon can write summaries. */
  summarizes = true;
  private socket: WebSocket | undefined;
  private calls = new Map<number, Call>();
  private lastId = 0;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly address: string,
    private readonly token: string,
    private readonly observer: LinkObserver,
  ) {}

  connect(): void {
    clearTimeout(this.timer);
    this.nextAttempt = undefined;
    const old = this.socket;
    if (old) {
      old.onclose = null;
      old.close();
      this.drop();
    }
    this.set(this.attempts === 0 ? 'connecting' : 'lost');
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ token: this.token }));
      void this.introduce();
    };
    socket.onmessage = (event) => this.receive(String(event.data));
    socket.onclose = (event) => this.closed(event.code);
  }

  private async introduce(): Promise<void> {
    const asked = { session_before_tree: {}, session_before_fork: {}, session_before_compact: {} };
    const capabilities = {
      summaryDeltas: {},
      progress: {},
      searchHits: {},
      ui: ['select', 'confirm', 'input', 'editor'],
      ...(this.answers ? { answers: asked } : {}),
    };
    try {
      const clientInfo = { name: 'page' };
      const params = { protocolVersion: 1, clientInfo, capabilities };
      const answered = this.call<InitializeResult>('initialize', params);
      this.observer.introduced();
      this.summarizes = (await answered).capabilities.summarizer !== null;
    } catch {
      // The error about the end of the connection says more.
      return;
    }
    this.attempts = 0;
    this.set('open');
    this.observer.opened();
  }

  private set(state: LinkState): void {
    this.state = state;
    this.observer.stateChanged();
  }

  private closed(code: number): void {
    this.socket = undefined;
    this.drop();
    if (code === 1008) {
      this.set('refused');
      return;
    }
    const wait = Math.min(LONGEST_WAIT, 250 * 2 ** this.attempts);
    this.attempts++;
    this.nextAttempt = Date.now() + wait;
    this.timer = setTimeout(() => this.connect(), wait);
    this.set('lost');
  }

  private drop(): void {
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) {
      call.reject(new RpcError('disconnected', 'The connection to the daemon is lost.', undefined));
    }
  }

  private receive(text: string): void {
    const message = JSON.parse(text) as Message;
    if (message.method !== undefined) {
      this.observer.notified(message.method, message.params ?? {});
      return;
    }
    const call = this.calls.get(message.id ?? 0);
    this.calls.delete(message.id ?? 0);
    const { error } = message;
    if (error) {
      const { kind = 'unknown', details } = error.data ?? {};
      call?.reject(new RpcError(kind, error.message ?? kind, details));
    } else call?.resolve(message.result);
  }

  call<T>(method: string, params: object, options: CallOptions = {}): Promise<T> {
    const { socket } = this;
    if (socket?.readyState !== WebSocket.OPEN) {
      const error = new RpcError(
        'disconnected',
        'There is no connection to the daemon.',
        undefined,
      );
      return Promise.reject(error);
    }
    const id = ++this.lastId;
    options.token?.(id);
    options.signal?.addEventListener('abort', () => this.cancel(id));
    return new Promise<T>((resolve, reject) => {
      this.calls.set(id, { resolve: resolve as (result: unknown) => void, reject });
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  private cancel(id: number): void {
    if (!this.calls.has(id)) return;
    void this.call('$/cancel_request', { id }).catch(() => undefined);
  }
}
