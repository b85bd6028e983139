// Formats Lua with the WebAssembly build of StyLua, which needs no native program. `--check` only reports differences.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const stylua = createRequire(import.meta.url)('@johnnymorganz/stylua');

/** Returns a new configuration: formatting consumes it. */
function config() {
  const config = stylua.Config.new();
  config.column_width = 100;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  config.quote_style = stylua.QuoteStyle.AutoPreferSingle;
  return config;
}

const isCheck = process.argv[2] === '--check';
let unformatted = 0;
for (const path of process.argv.slice(isCheck ? 3 : 2)) {
  const text = readFileSync(path, 'utf8');
  const formatted = stylua.formatCode(text, config(), undefined, stylua.OutputVerification.Full);
  if (formatted === text) continue;
  unformatted += 1;
  if (isCheck) console.error(`${path} is not formatted: node tools/format.mjs ${path}`);
  else writeFileSync(path, formatted);
}
process.exitCode = isCheck && unformatted > 0 ? 1 : 0;
