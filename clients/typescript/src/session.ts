// The methods of a client, about one session.

import type { CallOptions } from './options.js';
import { MethodCalls, type Methods, SESSION_METHODS } from './generated/protocol.js';

/** The methods of a client, about one session unless a call names another. */
export class Session extends MethodCalls {
  constructor(
    readonly client: MethodCalls,
    readonly sessionId: string,
  ) {
    super();
  }

  /** Calls a method by its name in the protocol. */
  override call<M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
    options?: CallOptions,
  ): Promise<Methods[M]['result']> {
    const { sessionId } = this;
    const about = SESSION_METHODS.has(method) ? { sessionId, ...params } : params;
    return this.client.call(method, about, options);
  }
}
