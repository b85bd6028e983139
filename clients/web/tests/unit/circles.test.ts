/** The source files do not import each other in a circle, not even for types. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/** The imports of each file. Paths are relative to `src`. */
function imports(): Map<string, string[]> {
  const names = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => /\.tsx?$/.test(name));
  return new Map(
    files.map((file) => {
      const text = readFileSync(join('src', file), 'utf8');
      const found = [...text.matchAll(/^(?:import|export|\}) .*from '(\.[^']+)';/gm)];
      return [file, found.map(([, path = '']) => normalize(join(dirname(file), path)))];
    }),
  );
}

function circle(files: ReadonlyMap<string, string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of files.get(file) ?? []) {
      const found = visit(next, [...path, file]);
      if (found) return found;
    }
    done.add(file);
    return undefined;
  };
  for (const file of files.keys()) {
    const found = visit(file, []);
    if (found) return found;
  }
  return undefined;
}

test('no file imports itself by way of others', () => {
  const files = imports();
  for (const next of files.values())
    for (const file of next) assert.ok(files.has(file), `${file} is read`);
  assert.ok(files.get('main.tsx')?.includes('model/app.ts'));
  assert.ok(files.get('model/app.ts')?.includes('model/live.ts'), 'imports of types count');
  assert.equal(circle(files)?.join(' → '), undefined);
  const [a, b] = ['a.ts', 'b.ts'];
  assert.deepEqual(
    circle(
      new Map([
        ['c.ts', [a]],
        [a, [b]],
        [b, [a]],
      ]),
    ),
    [a, b, a],
  );
});
