/**
 * Measures the page with 100,000 entries: node tools/run.js measure. The file is that of `treelined export`, the live page
 * that of `treelined web`; both in headless Chromium, without a graphics processor.
 */

import { statSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { large } from '../tests/sample.ts';
import { Stage, type Watched } from '../tests/browser/harness.ts';

const COUNT = Number(process.argv[2] ?? 100_000);

function row(name: string, value: string): void {
  console.log(`${name.padEnd(44)} ${value}`);
}

const ms = (value: number): string => `${Math.round(value)} ms`;

async function paint(page: Page): Promise<number> {
  return page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  );
}

/** The time until the rows that a search finds are there. */
async function search(page: Page, words: string): Promise<number> {
  return page.evaluate(async (words) => {
    const field = document.querySelector<HTMLInputElement>('#search');
    const foot = document.querySelector('.tree-foot');
    if (!field || !foot) return NaN;
    const start = performance.now();
    field.value = words;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    while (!foot.textContent.includes('hit')) await new Promise(requestAnimationFrame);
    return performance.now() - start;
  }, words);
}

/** Scrolls for a while, and returns the frames a second and the longest time between two. */
async function scroll(page: Page, selector: string): Promise<{ rate: number; longest: number }> {
  return page.evaluate(async (selector) => {
    const box = document.querySelector(selector);
    if (!box) return { rate: NaN, longest: NaN };
    box.dispatchEvent(new WheelEvent('wheel'));
    const times: number[] = [];
    box.scrollTop = box.scrollHeight / 3;
    for (let frame = 0; frame < 180; frame++) {
      times.push(await new Promise(requestAnimationFrame));
      box.scrollTop -= 90;
    }
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? time));
    const whole = (times.at(-1) ?? 0) - (times[0] ?? 0);
    return { rate: (gaps.length / whole) * 1000, longest: Math.max(...gaps) };
  }, selector);
}

async function measure(watched: Watched, name: string): Promise<void> {
  const { page } = watched;
  await page.waitForTimeout(4000);
  row(`${name}: search, first`, ms(await search(page, 'stale import')));
  await page.locator('#search').fill('');
  await page.waitForTimeout(1000);
  row(`${name}: search, again`, ms(await search(page, 'question missing cache')));
  await page.locator('#search').fill('');
  await page.waitForTimeout(1500);
  for (const [part, selector] of [
    ['tree', '#tree'],
    ['text', '#path'],
  ] as const) {
    const { rate, longest } = await scroll(page, selector);
    row(`${name}: scrolling the ${part}`, `${rate.toFixed(1)} frames/s, longest ${ms(longest)}`);
  }
}

const stage = await Stage.open();
const session = large(COUNT);
row('session', `${COUNT} entries, ${(session.jsonl().length / 1e6).toFixed(0)} MB`);
let start = performance.now();
const file = stage.export(session);
row('export, with writing the session', ms(performance.now() - start));
row('file', `${(statSync(file).size / 1e6).toFixed(1)} MB`);
start = performance.now();
const fromFile = await stage.openFile(file);
row('file: tree there', ms(performance.now() - start));
await fromFile.page.waitForTimeout(1500);
row('file: first paint', ms(await paint(fromFile.page)));
await measure(fromFile, 'file');
await fromFile.close();
const served = await stage.serve(session);
start = performance.now();
const live = await served.open(`&s=${session.sessionId}`);
await live.page.waitForSelector('#tree [role=treeitem]', { state: 'attached' });
row('live: tree there, the daemon opening the file', ms(performance.now() - start));
await live.page.waitForSelector('.entry.selected .body');
await live.page.waitForTimeout(5000);
start = performance.now();
await live.page.reload();
await live.page.waitForSelector('#tree [role=treeitem]', { state: 'attached' });
row('live: tree there again', ms(performance.now() - start));
await measure(live, 'live');
await stage.close();
