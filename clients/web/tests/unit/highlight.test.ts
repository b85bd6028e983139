import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONGEST, tokens, type Token } from '../../src/text/highlight.ts';

function textOf(token: Token): string {
  return token.children
    .map((child) => (typeof child === 'string' ? child : textOf(child)))
    .join('');
}

test('tokens have the text as it is', () => {
  const code = 'fn main() { println!("<b>&amp;</b>"); } // </script>';
  const token = tokens(code, 'rust');
  assert.ok(token);
  assert.equal(textOf(token), code);
  assert.ok(JSON.stringify(token).includes('"scope":"keyword"'));
});

test('common names of languages are known', () => {
  for (const name of [
    'rust',
    'rs',
    'ts',
    'tsx',
    'js',
    'jsx',
    'py',
    'sh',
    'bash',
    'console',
    'json',
    'html',
    'yaml',
    'yml',
    'toml',
    'diff',
    'c',
    'cpp',
    'go',
    'sql',
    'md',
    'java',
    'kt',
    'rb',
    'php',
    'swift',
    'cs',
    'hs',
    'lua',
    'nix',
    'vue',
    'css',
  ]) {
    assert.ok(tokens('x', name), name);
  }
});

test('unknown languages and long texts have no tokens', () => {
  assert.equal(tokens('x', 'constructor'), undefined);
  assert.equal(tokens('x', '__proto__'), undefined);
  assert.equal(tokens('x'.repeat(LONGEST + 1), 'rust'), undefined);
});
