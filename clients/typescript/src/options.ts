/** The options of every call. */
export interface CallOptions {
  /** Milliseconds until the call fails with `timeout`; `Infinity` disables the deadline. */
  timeoutMs?: number | undefined;
  /**
   * Asks the daemon to cancel the call. The daemon decides: a waiting call fails with the signal's reason,
   * a navigation returns `cancelled`, and a call that has taken effect returns its usual result.
   */
  signal?: AbortSignal | undefined;
}
