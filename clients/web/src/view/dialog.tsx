/** A dialog over the page. The browser keeps the focus in it and closes it with Esc. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { IconButton } from './icons.tsx';

/** Within this time, in milliseconds, a person cannot have read a question. */
const EARLY = 500;

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
  /** Whether the dialog opens without an action of the person. */
  surprising?: boolean;
}

export function Dialog({ title, close, children, wide, surprising }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    const wanted = '.dialog-body :is([autofocus], input, textarea, button)';
    box.current?.querySelector<HTMLElement>(wanted)?.focus();
    const opened = performance.now();
    const early = (event: KeyboardEvent): void => {
      // A key pressed before the question could be read is not an answer.
      if (surprising && performance.now() - opened < EARLY) event.preventDefault();
    };
    const dialog = box.current;
    dialog?.addEventListener('keydown', early, true);
    return () => {
      dialog?.removeEventListener('keydown', early, true);
      if (before instanceof HTMLElement && before !== document.body) before.focus();
      else document.querySelector<HTMLElement>('#tree')?.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={wide ? 'wide' : ''}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header>
        <h2>{title}</h2>
        <IconButton icon="close" name="Close" hint="esc" run={close} />
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
