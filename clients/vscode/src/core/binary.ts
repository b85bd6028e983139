// Finds the program of the daemon.

import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { TreelinedError } from 'treelined';

export interface Places {
  /** The setting `treelined.command`; empty if it is not set. */
  setting: string;
  /** The folder of the extension. It may contain `bin/treelined`. */
  extensionDir: string;
  env: NodeJS.ProcessEnv;
}

const PROGRAM = 'treelined';

/**
 * Returns the path of the daemon. Looks in the setting, TREELINED_BIN, the extension's folder and the PATH, in this
 * order.
 */
export function findDaemon(places: Places): string {
  const { setting, extensionDir, env } = places;
  const tried: string[] = [];
  const found = (path: string, from: string): string | undefined => {
    if (isProgram(path)) return path;
    tried.push(`${path} (${from})`);
    return undefined;
  };
  const named = (program: string, from: string): string => {
    const path = isAbsolute(program) ? found(program, from) : onPath(program, env);
    if (path !== undefined) return path;
    // If a program is named, no other one may be used instead.
    throw missing(tried.length > 0 ? tried : [`${program} on the PATH (${from})`]);
  };
  if (setting !== '') return named(setting, 'the setting treelined.command');
  if (env.TREELINED_BIN) return named(env.TREELINED_BIN, 'TREELINED_BIN');
  const own = found(join(extensionDir, 'bin', PROGRAM), 'in the extension');
  if (own !== undefined) return own;
  const path = onPath(PROGRAM, env);
  if (path !== undefined) return path;
  throw missing([...tried, `${PROGRAM} on the PATH`]);
}

function onPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, program)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function missing(tried: string[]): TreelinedError {
  const message =
    `there is no daemon to start; tried: ${tried.join(', ')}. ` +
    'Install the extension for this platform, or `cargo install treelined`, ' +
    'or name the program in the setting treelined.command';
  return new TreelinedError(message, 'disconnected');
}
