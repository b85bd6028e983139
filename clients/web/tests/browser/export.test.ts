/** The review of an export, as a person uses it: what is replaced is shown, one secret is spared, and a word is added. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SessionWriter, text } from '../sample.ts';
import { Stage, type Served } from './harness.ts';

const TOKEN = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`;
const PASSWORD = 'q7Lw2-Vt9Xz4Kb8';

describe('the export of the live page', () => {
  let stage: Stage;
  let served: Served;

  before(async () => {
    stage = await Stage.open();
    const s = new SessionWriter('trip');
    s.user('u1', null, `Use the token ${TOKEN} for the trip to Rome.`);
    s.assistant('a1', 'u1', [text(`Done, with DB_PASSWORD=${PASSWORD} too.`)]);
    served = await stage.serve(s);
  });

  after(async () => {
    await stage.close();
  });

  async function saved(page: Page): Promise<string> {
    const waiting = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the file' }).click();
    const download = await waiting;
    assert.equal(download.suggestedFilename().slice(0, 13), 'Use-the-token');
    return readFileSync(await download.path(), 'utf8');
  }

  test('a person sees what is replaced, spares a secret and adds a word', async () => {
    const watched = await served.open('&s=trip');
    const { page } = watched;
    await page.locator('#tree .row', { hasText: 'for the trip to' }).waitFor();
    await page.locator('#tree').focus();
    await page.keyboard.press('x');
    const dialog = page.locator('dialog');
    await dialog.getByText('2 secrets').waitFor();
    const token = dialog.locator('.secrets label', { hasText: 'github-token' });
    assert.match(await token.innerText(), /gh….*40 characters, 1 × in u1/s);
    const shown = await dialog.innerText();
    assert.ok(!shown.includes(TOKEN) && !shown.includes(PASSWORD), shown);

    await dialog.getByLabel('The file').selectOption('markdown');
    await dialog.getByText('2 secrets').waitFor();
    await token.locator('input').uncheck();
    await dialog.getByLabel('A word to replace too').fill('Rome');
    await dialog.getByRole('button', { name: 'Add the word' }).click();
    await dialog.getByText('3 secrets').waitFor();
    const content = await saved(page);
    assert.ok(content.includes(TOKEN), 'it was spared');
    assert.ok(!content.includes(PASSWORD) && !content.includes('Rome'), content);
    assert.ok(content.includes('[redacted:word]'), content);
    await page.getByText('Exported as Use-the-token').waitFor();

    // The next export decides anew.
    await page.locator('#tree').focus();
    await page.keyboard.press('x');
    await dialog.getByText('2 secrets').waitFor();
    assert.ok(!(await saved(page)).includes(TOKEN));
    assert.deepEqual(watched.errors, []);
    await watched.close();
  });
});
