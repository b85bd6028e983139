// Finds the daemon's program.

import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The environment variable that names the program. */
const VARIABLE = 'TREELINED_BIN';

/** The program to start, and the places that were tried. */
export interface FoundProgram {
  command: string;
  tried: string[];
}

/**
 * Finds the program. One that the caller or `TREELINED_BIN` names is taken as it is. Otherwise that of the platform
 * package beside this one is taken, else the one on the `PATH`.
 */
export function findProgram(
  named: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): FoundProgram {
  if (named !== undefined) return { command: named, tried: [place(named, env)] };
  const variable = env[VARIABLE];
  if (variable) return { command: variable, tried: [`${place(variable, env)} (${VARIABLE})`] };
  const name = process.platform === 'win32' ? 'treelined.exe' : 'treelined';
  const platform = `treelined-${process.platform}-${process.arch}`;
  const own = programOf(platform, name);
  if (own !== undefined) return { command: own, tried: [own] };
  const tried = [`${VARIABLE} (not set)`, `the package ${platform}`, place(name, env)];
  return { command: name, tried };
}

/** The program of an installed package. */
function programOf(platform: string, name: string): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${platform}/package.json`);
    const path = join(dirname(manifest), 'bin', name);
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

function place(command: string, env: NodeJS.ProcessEnv): string {
  return command.includes('/') ? command : `${command} on the PATH (${env.PATH ?? ''})`;
}
