/** The heights of items in a column, most of them estimated. They are pixels in a Fenwick tree. */

export class Heights {
  private readonly sums: Float64Array;
  private readonly heights: Float64Array;
  private readonly measured: Uint8Array;

  constructor(
    readonly count: number,
    readonly estimate: number,
  ) {
    this.heights = new Float64Array(count).fill(estimate);
    this.measured = new Uint8Array(count);
    this.sums = new Float64Array(count + 1);
    for (let at = 1; at <= count; at++) {
      this.sums[at] = (this.sums[at] ?? 0) + estimate;
      const parent = at + (at & -at);
      if (parent <= count) this.sums[parent] = (this.sums[parent] ?? 0) + (this.sums[at] ?? 0);
    }
  }

  height(at: number): number {
    return this.heights[at] ?? 0;
  }

  isMeasured(at: number): boolean {
    return this.measured[at] === 1;
  }

  /** Sets the height of an item, and returns the change of its height. */
  set(at: number, height: number): number {
    if (at < 0 || at >= this.count) return 0;
    const change = height - this.height(at);
    this.measured[at] = 1;
    if (change === 0) return 0;
    this.heights[at] = height;
    for (let node = at + 1; node <= this.count; node += node & -node) {
      this.sums[node] = (this.sums[node] ?? 0) + change;
    }
    return change;
  }

  /** The height of all items above an item. */
  offset(at: number): number {
    let sum = 0;
    for (let node = Math.min(at, this.count); node > 0; node -= node & -node) {
      sum += this.sums[node] ?? 0;
    }
    return sum;
  }

  total(): number {
    return this.offset(this.count);
  }

  /** The item at a vertical position. Below all items it is the last one. */
  at(y: number): number {
    let at = 0;
    let rest = y;
    for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.count))); step > 0; step >>= 1) {
      const next = at + step;
      const sum = this.sums[next] ?? Infinity;
      if (next <= this.count && sum <= rest) {
        at = next;
        rest -= sum;
      }
    }
    return Math.max(0, Math.min(at, this.count - 1));
  }
}
