/** A question to the person at the page, from another client or from the daemon before a move. */

import { useState } from 'preact/hooks';
import type { Live } from '../model/live.ts';
import {
  isPersonQuestion,
  type MoveQuestion,
  type PersonQuestion,
  type Question,
} from '../model/questions.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

interface Props<Q> {
  live: Live;
  question: Q;
  close: () => void;
}

export function QuestionDialog({ live, question, close }: Props<Question>) {
  return isPersonQuestion(question) ? (
    <PersonDialog live={live} question={question} close={close} />
  ) : (
    <MoveDialog live={live} question={question} close={close} />
  );
}

function PersonDialog({ live, question }: Props<PersonQuestion>) {
  const [text, setText] = useState(question.initial ?? '');
  const answer = (result: object): void => void live.answer(question, result);
  const field = {
    value: text,
    placeholder: question.placeholder ?? '',
    'aria-label': 'Answer',
    autofocus: true,
    onInput: (event: { currentTarget: { value: string } }) => setText(event.currentTarget.value),
  };
  return (
    <Dialog
      surprising
      title={`${visible(question.by)} asks`}
      close={() => answer({ dismissed: true })}
    >
      <p class="asked" dir="auto">
        {visible(question.title)}
      </p>
      {question.message !== undefined && (
        <div class="plain" dir="auto">
          {question.message}
        </div>
      )}
      {question.kind === 'select' && (
        <div class="options">
          {(question.options ?? []).map((option) => (
            <button type="button" dir="auto" onClick={() => answer({ value: option })}>
              {visible(option)}
            </button>
          ))}
        </div>
      )}
      {question.kind === 'confirm' && (
        <div class="choices">
          <button type="button" class="main-button" onClick={() => answer({ value: true })}>
            Yes
          </button>
          <button type="button" onClick={() => answer({ value: false })}>
            No
          </button>
        </div>
      )}
      {(question.kind === 'input' || question.kind === 'editor') && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            answer({ value: text });
          }}
        >
          {question.kind === 'input' ? <input {...field} /> : <textarea rows={8} {...field} />}
          <div class="choices">
            <button type="submit" class="main-button">
              Answer
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

const ABOUT = {
  tree: 'A move is about to happen',
  compact: 'A compaction is about to happen',
  fork: 'A fork is about to be made',
};

function MoveDialog({ live, question, close }: Props<MoveQuestion>) {
  const [summary, setSummary] = useState('');
  const answer = (result: object): void => void live.answer(question, result);
  const { targetId } = question;
  const given =
    question.kind === 'compact' ? { compaction: { summary } } : { summary: { summary } };
  return (
    <Dialog surprising title={ABOUT[question.kind]} close={() => answer({})}>
      <p>
        {question.kind === 'fork'
          ? 'Another session begins at an entry of this one.'
          : `${plural(question.count, 'entry is', 'entries are')} ${question.kind === 'compact' ? 'summarized.' : 'left behind; they stay in the tree.'}`}{' '}
        {targetId !== undefined && question.sessionId === live.sessionId && (
          <button
            type="button"
            class="link-button"
            onClick={() => {
              close();
              void live.app.go(targetId);
            }}
          >
            Show where
          </button>
        )}
      </p>
      {question.summary && (
        <label class="field">
          Your own summary
          <textarea
            rows={5}
            value={summary}
            placeholder="optional"
            onInput={(event) => setSummary(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="choices">
        <button
          type="button"
          class="main-button"
          onClick={() => answer(summary.trim() === '' ? {} : given)}
        >
          {summary.trim() === '' ? 'Let it happen' : 'With this summary'}
        </button>
        <button type="button" onClick={() => answer({ cancel: true })}>
          Refuse
        </button>
      </div>
    </Dialog>
  );
}
