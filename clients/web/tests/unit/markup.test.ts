import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEntities, isWriterHtml, textOf } from '../../src/text/markup.ts';
import { payloads } from '../payloads.ts';

test("the daemon's HTML is accepted", () => {
  const good = [
    '<p>A <strong>b</strong> &amp; &lt;c&gt;</p>',
    '<h2>x</h2><ul><li>☑ y</li></ul><hr><ol start="3"><li>z<br>w</li></ol>',
    '<pre><code class="language-c++">x &lt; y</code></pre><pre><code>z</code></pre>',
    '<p><a href="https://a.example/?b=1&amp;c=2" title="&quot;t&quot;" rel="noopener noreferrer">x</a></p>',
    '<p><a href="mailto:ada@example.org" rel="noopener noreferrer">x</a></p>',
    '<table><thead><tr><th class="right">a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>',
    '',
    'plain &#39;text&#39;',
  ];
  for (const html of good) assert.ok(isWriterHtml(html), html);
});

test('every other element, attribute and address is refused', () => {
  const bad = [
    '<script>alert(1)</script>',
    '<img src=x>',
    '<p onclick="x">y</p>',
    '<p style="x">y</p>',
    '<P>x</P>',
    '<p',
    'a < b',
    '<svg></svg>',
    '<a href="javascript:alert(1)">x</a>',
    '<a href="&#106;avascript:alert(1)">x</a>',
    '<a href="java&#10;script:x">x</a>',
    '<a href="data:text/html,x">x</a>',
    '<a href="//a.example">x</a>',
    '<a href="https://a.example/\u0000">x</a>',
    "<a href='https://a.example'>x</a>",
    '<a href="https://a.example&nbsp;x">x</a>',
    '<code class="language-x y">z</code>',
    '<td class="x">y</td>',
    '<ol start="1e9">',
    '</p class="x">',
    '<!-- x -->',
    '<p><!DOCTYPE html></p>',
    '<a href="https://a.example" href="javascript:x" onclick="y">x</a>',
    '<a target="_top" href="https://a.example">x</a>',
  ];
  for (const html of bad) assert.ok(!isWriterHtml(html), html);
});

test('payloads with markup are refused', () => {
  const acting = payloads().filter(
    (payload) => payload.includes('<') && !payload.startsWith('<https'),
  );
  for (const payload of acting) assert.ok(!isWriterHtml(`<p>${payload}</p>`), payload);
});

test('a long text is checked in linear time', () => {
  const start = performance.now();
  isWriterHtml('<p'.repeat(300_000));
  isWriterHtml(`<a href="${'x'.repeat(600_000)}`);
  isWriterHtml('<a href="https://x"'.repeat(50_000));
  assert.ok(performance.now() - start < 1000);
});

test('entities are decoded, unknown ones are not trusted', () => {
  assert.equal(decodeEntities('&lt;&#39;&#x41;&amp;'), "<'A&");
  assert.equal(decodeEntities('&colon;'), '\u0000');
  assert.equal(decodeEntities('&#0;&#x110000;'), '\u0000\u0000');
});

test('the text of HTML has no elements', () => {
  assert.equal(textOf('<p>a <b>b</b> &lt;i&gt;</p>').replace(/\s+/g, ' ').trim(), 'a b <i>');
});
