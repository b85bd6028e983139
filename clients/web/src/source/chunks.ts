/** Reads the chunks of a page file (FORMAT.md): base64 of gzip of JSON. */

interface FromBase64 {
  fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
}

export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as FromBase64).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Decodes a chunk to a JSON value. */
export async function decodeChunk(text: string): Promise<unknown> {
  const stream = new Blob([decodeBase64(text)]).stream();
  const inflated = stream.pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(inflated).text());
}

export interface Chunks {
  has(name: string): boolean;
  read(name: string): Promise<unknown>;
}

/** The chunks of the document that contains the script. The chunks of bodies may not be parsed yet. */
export class DocumentChunks implements Chunks {
  has(name: string): boolean {
    return document.getElementById(`c-${name}`) !== null;
  }

  async read(name: string): Promise<unknown> {
    const element = await parsed(`c-${name}`);
    if (!element) throw new Error(`This file is incomplete: it has no part “${name}”.`);
    return decodeChunk(element.textContent.trim());
  }
}

/** Waits until the browser has parsed the element with this id. The rest of the file may take seconds more. */
function parsed(id: string): Promise<HTMLElement | null> {
  return new Promise((done) => {
    const look = (): void => {
      const element = document.getElementById(id);
      // The last element of a document that is still parsed may be incomplete.
      if (document.readyState === 'loading' && !element?.nextElementSibling) return;
      observer.disconnect();
      document.removeEventListener('DOMContentLoaded', look);
      done(element);
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { childList: true });
    document.addEventListener('DOMContentLoaded', look);
    look();
  });
}
