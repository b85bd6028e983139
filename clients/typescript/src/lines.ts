// Splits a stream of bytes into lines only at `\n`, since U+2028, U+2029 and `\r` may be inside messages.

const NEWLINE = 0x0a;

/** Collects chunks of lines. Reads each byte once, even if lines are long. */
export class LineSplitter {
  #parts: Uint8Array[] = [];
  #decoder = new TextDecoder();

  /** Returns the lines that end in this chunk, without their `\n`. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#parts.push(chunk.subarray(start, end));
      lines.push(this.#take());
      start = end + 1;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
    return lines;
  }

  #take(): string {
    const [only] = this.#parts;
    const bytes = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts);
    this.#parts = [];
    return this.#decoder.decode(bytes);
  }
}
