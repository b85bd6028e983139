/**
 * Measures the page with a large session: node tools/run.js measure [ENTRIES | SESSION.jsonl]. `treelined export`
 * makes the file, and `treelined web` serves the live page. Both are measured in headless Chromium, without a
 * graphics processor.
 */

import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { CDPSession, Page } from 'playwright-core';
import { large, SessionWriter } from '../tests/sample.ts';
import { Stage, Watched } from '../tests/browser/harness.ts';

/** Words that occur in many rows, in few rows, and in no row. */
const QUERIES = ['stale import', 'question missing cache', 'xylophone'];

function row(name: string, value: string): void {
  console.log(`${name.padEnd(46)} ${value}`);
}

const ms = (value: number): string => `${Math.round(value)} ms`;

async function paint(page: Page): Promise<number> {
  return page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  );
}

interface Shown {
  rowsShown?: number;
  textShown?: number;
}

/** Makes the page record, in each of its frames, when the tree has rows and when the selected entry has its text. */
async function noteFirst(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shown = window as Shown;
    const look = (): void => {
      if (document.querySelector('#tree [role=treeitem]')) shown.rowsShown ??= performance.now();
      if (document.querySelector('.entry.selected .body > :not(.waiting)'))
        shown.textShown ??= performance.now();
      if (shown.textShown === undefined) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}

/**
 * The time from the start of the document until the tree has rows, and until the conversation has its text, in
 * milliseconds.
 */
async function firstShown(page: Page): Promise<string> {
  await page.waitForFunction(() => (window as Shown).textShown !== undefined);
  const shown = await page.evaluate(() => {
    const { rowsShown, textShown } = window as Shown;
    return { rowsShown, textShown };
  });
  return `rows ${ms(shown.rowsShown ?? NaN)}, text ${ms(shown.textShown ?? NaN)}`;
}

/** The changes of the browser's own counters since the last call. */
class Counters {
  private before = new Map<string, number>();

  private constructor(private readonly session: CDPSession) {}

  static async of(page: Page): Promise<Counters> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    const counters = new Counters(session);
    await counters.take();
    return counters;
  }

  async take(): Promise<string> {
    const { metrics } = await this.session.send('Performance.getMetrics');
    const now = new Map(metrics.map(({ name, value }) => [name, value]));
    const since = (name: string): number => (now.get(name) ?? 0) - (this.before.get(name) ?? 0);
    const shown = [
      `${since('LayoutCount')} layouts ${ms(since('LayoutDuration') * 1000)}`,
      `styles ${ms(since('RecalcStyleDuration') * 1000)}`,
      `script ${ms(since('ScriptDuration') * 1000)}`,
      `all tasks ${ms(since('TaskDuration') * 1000)}`,
    ];
    this.before = now;
    return shown.join(', ');
  }
}

/** The messages on the page's WebSocket since the last call. */
class Traffic {
  private sent = new Map<string, number>();
  private bytes = 0;
  private asked: { id: string; at: number } | undefined;
  /** The time for the last query of the tree, from the request to the response, in milliseconds. */
  queried = NaN;

  constructor(page: Page) {
    page.on('websocket', (socket) => {
      socket.on('framesent', ({ payload }) => {
        const text = payload.toString();
        const method = /"method":"([^"]+)"/.exec(text)?.[1] ?? 'token';
        const id = /"id":(\d+)/.exec(text)?.[1];
        if (text.includes('"query"') && id !== undefined && !text.includes('"limit":1}')) {
          this.asked = { id, at: performance.now() };
        }
        this.sent.set(method, (this.sent.get(method) ?? 0) + 1);
      });
      socket.on('framereceived', ({ payload }) => {
        this.bytes += payload.length;
        const id = /"id":(\d+)/.exec(payload.toString().slice(0, 100))?.[1];
        if (this.asked && id === this.asked.id) {
          this.queried = performance.now() - this.asked.at;
          this.asked = undefined;
        }
      });
    });
  }

  take(): string {
    const sent = [...this.sent].map(([method, count]) =>
      count > 1 ? `${count} ${method}` : method,
    );
    const shown = `${sent.join(', ')}; ${(this.bytes / 1e3).toFixed(0)} kB`;
    this.sent = new Map();
    this.bytes = 0;
    return shown;
  }
}

/** The time until the rows that match a search are on the screen, in milliseconds. */
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

/** Scrolls with the wheel for three seconds. Returns the frames in a second, and the longest time between two. */
async function scroll(page: Page, selector: string): Promise<{ rate: number; longest: number }> {
  await page.evaluate((selector) => {
    const box = document.querySelector(selector);
    if (box) box.scrollTop = box.scrollHeight / 2;
  }, selector);
  const box = await page.locator(selector).boundingBox();
  await page.waitForTimeout(700);
  const frames = page.evaluate(async () => {
    const times: number[] = [];
    const end = performance.now() + 3000;
    while (performance.now() < end) times.push(await new Promise(requestAnimationFrame));
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? time));
    const whole = (times.at(-1) ?? 0) - (times[0] ?? 0);
    return { rate: (gaps.length / whole) * 1000, longest: Math.max(...gaps) };
  });
  const session = await page.context().newCDPSession(page);
  await session.send('Input.synthesizeScrollGesture', {
    x: (box?.x ?? 0) + (box?.width ?? 0) / 2,
    y: (box?.y ?? 0) + (box?.height ?? 0) / 2,
    yDistance: 5400,
    speed: 1800,
    gestureSourceType: 'mouse',
  });
  const { rate, longest } = await frames;
  await session.detach();
  return { rate, longest };
}

async function measure(watched: Watched, name: string, traffic?: Traffic): Promise<void> {
  const { page } = watched;
  await page.waitForTimeout(4000);
  if (traffic) row(`${name}: after opening`, traffic.take());
  const counters = await Counters.of(page);
  for (const words of QUERIES) {
    const took = await search(page, words);
    row(`${name}: search for ${words}`, ms(took));
    if (traffic) row(`${name}: of this the daemon and the way`, ms(traffic.queried));
    await page.locator('#search').fill('');
    await page.waitForTimeout(1500);
  }
  if (traffic) row(`${name}: searching`, traffic.take());
  await page.waitForTimeout(2500);
  await counters.take();
  for (const [part, selector] of [
    ['tree', '#tree'],
    ['text', '#path'],
  ] as const) {
    const { rate, longest } = await scroll(page, selector);
    row(
      `${name}: scrolling the ${part}`,
      `${rate.toFixed(1)} frames/s, longest ${ms(longest)} (${await counters.take()})`,
    );
  }
}

const [given = '100000'] = process.argv.slice(2);
const stage = await Stage.open();
const session = given.endsWith('.jsonl') ? SessionWriter.of(given) : large(Number(given));
const start = performance.now();
const file = stage.export(session);
row('export, with writing the session', ms(performance.now() - start));
row('file', `${(statSync(file).size / 1e6).toFixed(1)} MB`);
for (const round of ['first', 'again']) {
  const watched = await Watched.in(await stage.context());
  const { page } = watched;
  await noteFirst(page);
  await page.goto(pathToFileURL(file).href, { waitUntil: 'commit' });
  row(`file, ${round}: first shown`, await firstShown(page));
  await page.waitForLoadState();
  await page.waitForTimeout(500);
  row(`file, ${round}: first paint`, ms(await paint(page)));
  if (round === 'again') await measure(watched, 'file');
  await watched.close();
}
const served = await stage.serve(session);
const live = await served.open('');
const traffic = new Traffic(live.page);
await noteFirst(live.page);
for (const round of ['first', 'again', 'and again']) {
  await live.page.goto('about:blank');
  traffic.take();
  await live.page.goto(`${served.url.split('&')[0] ?? ''}&s=${session.sessionId}`);
  row(`live, ${round}: first shown`, await firstShown(live.page));
  row(`live, ${round}: requests`, traffic.take());
}
await measure(live, 'live', traffic);
await live.close();
await stage.close();
