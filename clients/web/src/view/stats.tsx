/** Tokens, cost and time: of the session, of each branch, and of all sessions. */

import { useEffect, useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import type { BranchRow, Source } from '../source/source.ts';
import { USAGE_BY, type Stats, type Usage, type UsageSums } from '../wire.ts';
import { UNKNOWN, money } from '../text/money.ts';
import { duration } from '../text/time.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

/** The most branches that are listed. */
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
      <h3>Branches, each from its first message on</h3>
      {lines ? <Branches app={app} lines={lines} /> : <p class="waiting">Counting…</p>}
      {session.source.usage && <AllSessions app={app} source={session.source} />}
    </Dialog>
  );
}

function number(value: number | undefined): string {
  return value === undefined ? UNKNOWN : Math.round(value).toLocaleString('en');
}

/** The cost of the sums. Files of earlier versions have only the recorded cost. */
function costOf(stats: Stats | undefined): string {
  const { costs, cost } = stats ?? {};
  const recorded = cost === undefined || cost === 0 ? null : cost;
  return money(costs ?? { recorded, estimated: null, unknownAnswers: 0 });
}

/** The tokens that were sent, without those that were read from the cache. */
function tokensIn(stats: Pick<Stats, 'tokens'> | undefined): number | undefined {
  const tokens = stats?.tokens;
  return tokens && tokens.input + tokens.cacheWrite;
}

/** The headings of the columns of tokens. */
function TokenHeads() {
  return (
    <>
      <th scope="col" title="tokens sent, without those from the cache">
        in
      </th>
      <th scope="col" title="tokens read from the cache">
        cached
      </th>
      <th scope="col" title="tokens received">
        out
      </th>
    </>
  );
}

function TokenCells({ stats }: { stats: Pick<Stats, 'tokens'> | undefined }) {
  return (
    <>
      <td>{number(tokensIn(stats))}</td>
      <td>{number(stats?.tokens?.cacheRead)}</td>
      <td>{number(stats?.tokens?.output)}</td>
    </>
  );
}

export function messageCount(stats: Stats | undefined): number | undefined {
  return stats?.messages && Object.values(stats.messages).reduce((sum, count) => sum + count, 0);
}

/** The figures of a part of a conversation, each with its name. */
export function Figures({ stats }: { stats: Stats }) {
  const { tokens, activeMs } = stats;
  const figures: [string, string][] = [
    ['messages', number(messageCount(stats))],
    ['tool calls', number(stats.toolCalls)],
    ['tokens in', number(tokensIn(stats))],
    ['from the cache', number(tokens?.cacheRead)],
    ['tokens out', number(tokens?.output)],
    ['cost', costOf(stats)],
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
            <TokenHeads />
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
              <TokenCells stats={stats} />
              <td>{costOf(stats)}</td>
              <td>{stats?.activeMs === undefined ? UNKNOWN : duration(stats.activeMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The usage of all sessions, by day, model, tool, session, branch or directory. */
function AllSessions({ app, source }: { app: App; source: Source }) {
  const [by, setBy] = useState<(typeof USAGE_BY)[number]>('day');
  const [usage, setUsage] = useState<Usage | undefined>(undefined);
  useEffect(() => {
    let open = true;
    setUsage(undefined);
    source
      .usage?.(by)
      .then((counted) => {
        if (open) setUsage(counted);
      })
      .catch(app.failed);
    return () => {
      open = false;
    };
  }, [by]);
  return (
    <>
      <h3>
        All sessions by{' '}
        <select
          aria-label="All sessions by"
          value={by}
          onChange={(event) => {
            const chosen = USAGE_BY.find((name) => name === event.currentTarget.value);
            if (chosen) setBy(chosen);
          }}
        >
          {USAGE_BY.map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </h3>
      {usage ? <UsageTable usage={usage} by={by} /> : <p class="waiting">Counting…</p>}
    </>
  );
}

/** The cost of answers. Without recorded tokens it is unknown too. */
function costOfAnswers({ answers, costs }: UsageSums): string {
  const cost = money(costs);
  return cost === UNKNOWN && answers > 0 ? 'unknown' : cost;
}

function UsageTable({ usage, by }: { usage: Usage; by: string }) {
  const { rows, total, moreRows = 0, unread } = usage;
  // A person usually looks for the newest day, so it is first.
  const shown = by === 'day' ? rows.toReversed() : rows;
  const notes = [
    by === 'branch'
      ? 'each branch from its fork on; what several share counts for the active one'
      : '',
    total.costs.estimated === null ? '' : `~ is estimated by prices, ${usage.prices}`,
    total.costs.unknownAnswers > 0 ? '? stands for costs that are not known' : '',
    total.answersWithoutTokens > 0
      ? `${plural(total.answersWithoutTokens, 'answer')} without recorded tokens`
      : '',
    moreRows > 0 ? `${number(moreRows)} more rows` : '',
    unread.length > 0 ? `${plural(unread.length, 'session')} could not be read` : '',
  ];
  const cells = (sums: UsageSums) => (
    <>
      <td>{number(sums.answers)}</td>
      <TokenCells stats={sums} />
      <td>{costOfAnswers(sums)}</td>
    </>
  );
  return (
    <>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Usage of all sessions">
        <table class="usage">
          <thead>
            <tr>
              <th scope="col">{by}</th>
              <th scope="col">answers</th>
              <TokenHeads />
              <th scope="col">cost</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">all</th>
              {cells(total)}
            </tr>
            {shown.map((row) => (
              <tr>
                <th scope="row">
                  <div class="branch-line">
                    <span class="branch-name">{visible(row.title ?? row.key) || '(none)'}</span>
                    {row.isActive && <span class="leaf">active</span>}
                  </div>
                </th>
                {cells(row)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>{visible(notes.filter(Boolean).join(' · '))}</p>
    </>
  );
}
