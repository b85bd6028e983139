// Builds and runs a program of this folder: node tools/run.js measure [ENTRIES], node tools/run.js shots
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [name = '', ...rest] = process.argv.slice(2);
const outfile = `${root}/build/${name}.mjs`;
await build({
  entryPoints: [`${root}/tools/${name}.ts`],
  outfile,
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
});
const run = spawnSync(process.execPath, [outfile, ...rest], { stdio: 'inherit', cwd: root });
process.exit(run.status ?? 1);
