import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heights } from '../../src/text/heights.ts';

test('offsets and places agree with a plain array', () => {
  const count = 257;
  const heights = new Heights(count, 50);
  const model = new Array<number>(count).fill(50);
  let state = 7;
  for (let step = 0; step < 2000; step++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    const at = state % count;
    const height = (state >> 8) % 120;
    assert.equal(heights.set(at, height), height - (model[at] ?? 0));
    model[at] = height;
  }
  let sum = 0;
  model.forEach((height, at) => {
    assert.equal(heights.offset(at), sum);
    if (height > 0) assert.equal(heights.at(sum), at);
    if (height > 1) assert.equal(heights.at(sum + height - 1), at);
    sum += height;
  });
  assert.equal(heights.total(), sum);
  assert.equal(heights.at(sum + 1000), count - 1);
});

test('a column without items has no height', () => {
  const heights = new Heights(0, 50);
  assert.equal(heights.total(), 0);
  assert.equal(heights.at(10), 0);
  assert.equal(heights.set(0, 10), 0);
});
