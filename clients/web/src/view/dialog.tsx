/** A dialog over the page. The browser keeps the focus in it and closes it with Esc. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { IconButton } from './icons.tsx';

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({ title, close, children, wide }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
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
