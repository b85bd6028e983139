/** Tokens, cost and time: of the session, and of each branch. */

import { useEffect, useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import type { BranchRow } from '../source/source.ts';
import type { Stats } from '../wire.ts';
import { duration } from '../text/time.ts';
import { visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

/** How many branches are listed. */
const MOST = 60;

interface Line {
  branch: BranchRow;
  stats: Stats | undefined;
}

export function StatsView({ app, session }: { app: App; session: Session }) {
  const [total, setTotal] = useState<Stats | undefined>(undefined);
  const [lines, setLines] = useState<Line[] | undefined>(undefined);
  useEffect(() => {
    let open = true;
    const load = async (): Promise<void> => {
      const sum = await session.source.stats();
      if (open) setTotal(sum);
      const branches = (await session.source.branches()).slice(0, MOST);
      const loaded: Line[] = [];
      for (const branch of branches) {
        loaded.push({ branch, stats: await session.source.stats(branch.tipId) });
        if (!open) return;
        if (loaded.length % 10 === 0) setLines([...loaded]);
      }
      setLines(loaded);
    };
    load().catch(app.failed);
    return () => {
      open = false;
    };
  }, []);
  return (
    <Dialog title="Statistics" wide close={() => app.close()}>
      {total ? <Figures stats={total} /> : <p class="waiting">Counting…</p>}
      <h3>Branches</h3>
      {lines ? <Branches app={app} lines={lines} /> : <p class="waiting">Counting…</p>}
    </Dialog>
  );
}

const UNKNOWN = '–';

function number(value: number | undefined): string {
  return value === undefined ? UNKNOWN : Math.round(value).toLocaleString('en');
}

export function money(value: number | undefined): string {
  // The tools of many sessions do not record it.
  if (value === undefined || value === 0) return UNKNOWN;
  return value < 0.01 ? '< 0.01' : value.toFixed(2);
}

function tokensIn(stats: Stats | undefined): number | undefined {
  const tokens = stats?.tokens;
  return tokens && tokens.input + tokens.cacheRead + tokens.cacheWrite;
}

export function messageCount(stats: Stats | undefined): number | undefined {
  return stats?.messages && Object.values(stats.messages).reduce((sum, count) => sum + count, 0);
}

/** The figures of a stretch of conversation, each with its name. */
export function Figures({ stats }: { stats: Stats }) {
  const { tokens, cost, activeMs } = stats;
  const figures: [string, string][] = [
    ['messages', number(messageCount(stats))],
    ['tool calls', number(stats.toolCalls)],
    ['tokens in', number(tokensIn(stats))],
    ['of these cached', number(tokens?.cacheRead)],
    ['tokens out', number(tokens?.output)],
    ['cost', money(cost)],
    ['time', activeMs === undefined ? UNKNOWN : duration(activeMs)],
  ];
  return (
    <dl class="figures">
      {figures
        .filter(([, value]) => value !== UNKNOWN)
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Branches({ app, lines }: { app: App; lines: Line[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Statistics of branches">
      <table class="branches">
        <thead>
          <tr>
            <th scope="col">branch</th>
            <th scope="col">messages</th>
            <th scope="col">in</th>
            <th scope="col">out</th>
            <th scope="col">cost</th>
            <th scope="col">time</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ branch, stats }) => (
            <tr>
              <th scope="row">
                <div class="branch-line">
                  <button
                    type="button"
                    class="link-button"
                    onClick={() => {
                      app.close();
                      void app.go(branch.tipId);
                    }}
                  >
                    <span class={branch.label === undefined ? 'branch-name' : 'label'}>
                      {visible(branch.name) || visible(branch.tipId)}
                    </span>
                  </button>
                  {branch.isActive && <span class="leaf">active</span>}
                </div>
              </th>
              <td>{number(messageCount(stats))}</td>
              <td>{number(tokensIn(stats))}</td>
              <td>{number(stats?.tokens?.output)}</td>
              <td>{money(stats?.cost)}</td>
              <td>{stats?.activeMs === undefined ? UNKNOWN : duration(stats.activeMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
