/** Colours code. highlight.js makes tokens, and this module makes nodes from them, so that no text becomes markup. */

import hljs from 'highlight.js/lib/core';
import type { LanguageFn } from 'highlight.js';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import elixir from 'highlight.js/lib/languages/elixir';
import go from 'highlight.js/lib/languages/go';
import haskell from 'highlight.js/lib/languages/haskell';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import kotlin from 'highlight.js/lib/languages/kotlin';
import lua from 'highlight.js/lib/languages/lua';
import makefile from 'highlight.js/lib/languages/makefile';
import markdown from 'highlight.js/lib/languages/markdown';
import nix from 'highlight.js/lib/languages/nix';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import scala from 'highlight.js/lib/languages/scala';
import scss from 'highlight.js/lib/languages/scss';
import sql from 'highlight.js/lib/languages/sql';
import swift from 'highlight.js/lib/languages/swift';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES: Record<string, LanguageFn> = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  elixir,
  go,
  haskell,
  ini,
  java,
  javascript,
  json,
  kotlin,
  lua,
  makefile,
  markdown,
  nix,
  php,
  python,
  ruby,
  rust,
  scala,
  scss,
  sql,
  swift,
  typescript,
  xml,
  yaml,
};

/** Longer code is not coloured, since a reader would have to wait. */
export const LONGEST = 100_000;

export interface Token {
  scope?: string;
  children: (Token | string)[];
}

interface Result {
  _emitter: { rootNode: Token };
}

let ready = false;

function prepare(): void {
  if (ready) return;
  ready = true;
  for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
  hljs.registerAliases(['console', 'shell', 'shellsession'], { languageName: 'bash' });
  hljs.registerAliases('vue', { languageName: 'xml' });
}

/** The tokens of code; undefined if the language is not known. */
export function tokens(text: string, language: string): Token | undefined {
  prepare();
  if (text.length > LONGEST || !hljs.getLanguage(language)) return undefined;
  const result = hljs.highlight(text, { language, ignoreIllegals: true });
  return (result as unknown as Result)._emitter.rootNode;
}

/** Makes nodes from tokens. The names of classes come from the grammars, never from the text. */
export function build(token: Token, into: Node): void {
  for (const child of token.children) {
    if (typeof child === 'string') {
      into.appendChild(document.createTextNode(child));
      continue;
    }
    const span = document.createElement('span');
    const scope = child.scope?.split('.')[0];
    if (scope !== undefined && /^[a-z_-]+$/.test(scope)) span.className = `hl-${scope}`;
    build(child, span);
    into.appendChild(span);
  }
}

let seen: IntersectionObserver | undefined;
const waiting = new WeakMap<Element, string>();

function colour(element: Element, language: string): void {
  const token = tokens(element.textContent, language);
  if (!token) return;
  const fragment = document.createDocumentFragment();
  build(token, fragment);
  element.replaceChildren(fragment);
}

/** Colours the text of an element when it comes into view. */
export function colourWhenSeen(element: Element, language: string): void {
  seen ??= new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen?.unobserve(entry.target);
        const wanted = waiting.get(entry.target);
        if (wanted !== undefined) colour(entry.target, wanted);
      }
    },
    { rootMargin: '200px' },
  );
  waiting.set(element, language);
  seen.observe(element);
}
