// What a call can fail with.

import type { ErrorDetails } from './generated/protocol.js';
import type { ErrorKind, ErrorObject } from './generated/types.js';

/**
 * Kinds of failures that no daemon answered:
 * `disconnected`: it cannot be started, is gone, or is being closed; `details` has `exitCode`,
 * `signal` and `stderr` (its last words).
 * `timeout`: no answer in time; `details` has `timeoutMs`.
 * `versionMismatch`: it speaks another protocol version; `details` has `expected` and `spoken`.
 */
export type ClientErrorKind = 'disconnected' | 'timeout' | 'versionMismatch';

/** A call that failed. `kind` tells why; numbers and texts are for people. */
export class TreelinedError extends Error {
  override readonly name = 'TreelinedError';

  constructor(
    message: string,
    readonly kind: ErrorKind | ClientErrorKind,
    /** By kind. */
    readonly details: Record<string, unknown> = {},
    /** The same call may succeed later, unchanged. */
    readonly retryable = false,
    /** Milliseconds after which a retry makes sense. */
    readonly retryAfterMs?: number,
    /** JSON-RPC's number, if the daemon answered. */
    readonly code?: number,
  ) {
    super(message);
  }

  /** Whether it is of this kind, and if so, that `details` has the members of the kind. */
  is<K extends keyof ErrorDetails>(
    kind: K,
  ): this is TreelinedError & { kind: K; details: ErrorDetails[K] };
  is(kind: ErrorKind | ClientErrorKind): boolean;
  is(kind: string): boolean {
    return this.kind === kind;
  }

  /**
   * The same failure as seen from where the call was made: a stack of its own holds only this package's
   * reading of the answer.
   */
  at(site: string): TreelinedError {
    const { message, kind, details, retryable, retryAfterMs, code } = this;
    const error = new TreelinedError(message, kind, details, retryable, retryAfterMs, code);
    if (site !== '') error.stack = `${error.name}: ${message}\n${site}`;
    return error;
  }

  /** From the `error` of a response. */
  static answered(method: string, error: ErrorObject): TreelinedError {
    const { kind, details, retryable, retryAfterMs } = error.data;
    const message = `${method}: ${error.message}`;
    return new TreelinedError(message, kind, details, retryable, retryAfterMs, error.code);
  }
}

/** The frames of the stack from here on, without the message above them. */
export function callSite(): string {
  const lines = (new Error().stack ?? '').split('\n');
  const first = lines.findIndex((line) => /^\s+at /.test(line));
  return first === -1 ? '' : lines.slice(first + 1).join('\n');
}
