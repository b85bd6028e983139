// Calls functions with events.

export class Emitter<T> {
  readonly #listeners = new Set<(event: T) => void>();

  /** Calls `listener` with each event. Returns a function that stops this. */
  on(listener: (event: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  fire(event: T): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/**
 * Returns a function that calls `run` at once, and later at most once in `ms` milliseconds. After the last of many
 * calls, `run` is always called. `stop` drops a waiting call.
 */
export function throttle(ms: number, run: () => void): { (): void; stop: () => void } {
  let timer: NodeJS.Timeout | undefined;
  let isAsked = false;
  const later = () => {
    timer = undefined;
    if (isAsked) call();
  };
  const call = () => {
    if (timer) {
      isAsked = true;
      return;
    }
    isAsked = false;
    timer = setTimeout(later, ms);
    run();
  };
  return Object.assign(call, {
    stop: () => {
      clearTimeout(timer);
      timer = undefined;
      isAsked = false;
    },
  });
}
