// Tests that bytes are split into lines.

import assert from 'node:assert/strict';
import test from 'node:test';
import { LineSplitter } from '../src/lines.js';

const bytes = new TextEncoder().encode('one\r\n\ntwo\u2028three 😀\u2029\nrest');
const lines = ['one\r', '', 'two\u2028three 😀\u2029'];

test('lines end only at line feeds, for every division into chunks', () => {
  for (let size = 1; size <= bytes.length; size += 1) {
    const splitter = new LineSplitter();
    const found: string[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      found.push(...splitter.push(bytes.subarray(start, start + size)));
    }
    assert.deepEqual(found, lines, `chunks of ${size}`);
  }
});
