/** A tool call with its result, folded. */

import type { ComponentChildren } from 'preact';
import type { Block, ToolCall } from '../wire.ts';
import { visible } from '../text/visible.ts';
import { Code, Fold, diffCounts, type BlockContext } from './parts.tsx';

interface ToolCallProps {
  call: ToolCall;
  context: BlockContext;
  /** Shows the blocks of the call or of its result. `place` is their position. */
  show: (blocks: Block[], place: string) => ComponentChildren;
}

export function ToolCallView({ call, context, show }: ToolCallProps) {
  const { session, place } = context;
  const selected = session.path?.id;
  const isSelected = call.result !== undefined && call.result.entryId === selected;
  const open = session.isPartOpen('tools', place, isSelected);
  const failed = call.result?.isError === true;
  return (
    <Fold
      class={`tool-call${failed ? ' failed' : ''}${isSelected ? ' selected' : ''}`}
      open={open}
      toggle={(now) => session.togglePart('tools', place, now)}
      head={<Head call={call} />}
    >
      <Inside call={call} context={context} show={show} />
    </Fold>
  );
}

function Head({ call }: { call: ToolCall }) {
  let [added, removed] = [0, 0];
  for (const block of call.blocks ?? []) {
    if (block.kind !== 'diff') continue;
    const counts = diffCounts(block.text);
    added += counts.added;
    removed += counts.removed;
  }
  return (
    <>
      <span class="fold-name">{visible(call.name)}</span>
      <span class="fold-hint mono" dir="auto">
        {visible(call.argument ?? '')}
      </span>
      {added + removed > 0 && (
        <span class="counts">
          <span class="added">+{added}</span> <span class="removed">−{removed}</span>
        </span>
      )}
      <span class={`outcome ${call.result ? (call.result.isError ? 'bad' : 'good') : 'none'}`}>
        {call.result ? (call.result.isError ? 'failed' : 'done') : 'no result'}
      </span>
    </>
  );
}

function Inside({ call, context, show }: ToolCallProps) {
  const { session, place } = context;
  const changes = call.blocks ?? [];
  const result = call.result;
  const blocks: Block[] | undefined =
    result && (result.blocks ?? session.bodies.get(result.entryId)?.blocks);
  // A simple call has nothing more than the argument in its head.
  const simple = changes.length > 0 || isOnlyArgument(call);
  return (
    <>
      {!simple && (
        <Code
          text={indented(call.arguments)}
          language="json"
          truncated={call.truncated}
          app={context.app}
        />
      )}
      {changes.length > 0 && show(changes, `${place}.c`)}
      {result && !blocks && <p class="waiting">…</p>}
      {blocks && <div class="result">{show(blocks, `${place}.r`)}</div>}
    </>
  );
}

function isOnlyArgument(call: ToolCall): boolean {
  try {
    const value: unknown = JSON.parse(call.arguments);
    if (typeof value !== 'object' || value === null) return false;
    const values: unknown[] = Object.values(value);
    return values.length === 0 || (values.length === 1 && values[0] === call.argument);
  } catch {
    return false;
  }
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
