/** A dialog over the page. The browser keeps the focus in it and closes it with Esc. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { IconButton } from './icons.tsx';

/** Milliseconds in which nobody reads a question. */
const EARLY = 500;

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
  /** Whether it opens by itself. */
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
      // A key that was on its way before the question could be read is not an answer.
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
