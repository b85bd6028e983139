// Errors of calls.

import type { ErrorDetails } from './generated/protocol.js';
import type { ErrorKind, ErrorObject } from './generated/types.js';

/**
 * Kinds of errors that come from this client:
 * `disconnected`: the daemon could not be started, has ended, or is closed; `details` has `exitCode`,
 * `signal` and `stderr` (its end).
 * `timeout`: no response in time; `details` has `timeoutMs`.
 * `versionMismatch`: the daemon speaks another protocol version; `details` has `expected` and `spoken`.
 */
export type ClientErrorKind = 'disconnected' | 'timeout' | 'versionMismatch';

/** The error of a call. Programs should test `kind`; the code and the message are for people. */
export class TreelinedError extends Error {
  override readonly name = 'TreelinedError';

  constructor(
    message: string,
    readonly kind: ErrorKind | ClientErrorKind,
    /** The members depend on the kind. */
    readonly details: Record<string, unknown> = {},
    /** Whether the same call may succeed later, unchanged. */
    readonly retryable = false,
    /** Milliseconds after which a retry makes sense. */
    readonly retryAfterMs?: number,
    /** The JSON-RPC code, if the daemon answered. */
    readonly code?: number,
  ) {
    super(message);
  }

  /** Returns whether the error has this kind; `details` then has the members of the kind. */
  is<K extends keyof ErrorDetails>(
    kind: K,
  ): this is TreelinedError & { kind: K; details: ErrorDetails[K] };
  is(kind: ErrorKind | ClientErrorKind): boolean;
  is(kind: string): boolean {
    return this.kind === kind;
  }

  /** Returns the same error with the stack of the call. Its own stack has only functions of this package. */
  at(site: string): TreelinedError {
    const { message, kind, details, retryable, retryAfterMs, code } = this;
    const error = new TreelinedError(message, kind, details, retryable, retryAfterMs, code);
    if (site !== '') error.stack = `${error.name}: ${message}\n${site}`;
    return error;
  }

  /** Makes an error from the `error` member of a response. */
  static answered(method: string, error: ErrorObject): TreelinedError {
    const { kind, details, retryable, retryAfterMs } = error.data;
    const message = `${method}: ${error.message}`;
    return new TreelinedError(message, kind, details, retryable, retryAfterMs, error.code);
  }
}

/** Returns the stack from the caller on, without the message above it. */
export function callSite(): string {
  const lines = (new Error().stack ?? '').split('\n');
  const first = lines.findIndex((line) => /^\s+at /.test(line));
  return first === -1 ? '' : lines.slice(first + 1).join('\n');
}
