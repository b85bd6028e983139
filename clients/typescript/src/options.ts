/** The options of every call. */
export interface CallOptions {
  /** The time after which the call fails with `timeout`, in milliseconds. `Infinity` means no deadline. */
  timeoutMs?: number | undefined;
  /**
   * When it aborts, the daemon is asked to cancel the call. The daemon decides: a waiting call fails with the
   * signal's reason, a navigation returns `cancelled`, and a call that has already taken effect returns its usual
   * result.
   */
  signal?: AbortSignal | undefined;
}
