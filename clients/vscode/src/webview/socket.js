// Runs in the webview before the page. It defines a WebSocket whose messages the extension carries to the daemon.

(() => {
  const editor = acquireVsCodeApi();
  const { session, isDark } = document.currentScript.dataset;
  const sockets = new Map();

  class EditorSocket {
    static CONNECTING = 0;
    static OPEN = 1;
    static CLOSING = 2;
    static CLOSED = 3;
    readyState = EditorSocket.CONNECTING;
    onopen = null;
    onmessage = null;
    onclose = null;

    constructor() {
      this.number = sockets.size + 1;
      sockets.set(this.number, this);
      this.post('open');
    }

    post(what, text) {
      editor.postMessage({ socket: this.number, what, text });
    }

    send(text) {
      this.post('text', text);
    }

    close() {
      this.readyState = EditorSocket.CLOSED;
      this.post('close');
    }

    receive({ what, text }) {
      if (this.readyState === EditorSocket.CLOSED) return;
      if (what === 'open') {
        this.readyState = EditorSocket.OPEN;
        this.onopen?.({});
      } else if (what === 'text') this.onmessage?.({ data: text });
      else {
        this.readyState = EditorSocket.CLOSED;
        this.onclose?.({ code: 1006 });
      }
    }
  }

  window.WebSocket = EditorSocket;
  window.addEventListener('message', ({ data }) => sockets.get(data?.socket)?.receive(data));

  // Light or dark follows the editor, not the browser.
  const media = window.matchMedia.bind(window);
  window.matchMedia = (query) =>
    media(/prefers-color-scheme/.test(query) ? (isDark === 'true' ? 'all' : 'not all') : query);

  // The page reads the session from its address. Only a real WebSocket needs a token.
  window.location.hash = `#t=editor&s=${encodeURIComponent(session)}`;
})();
