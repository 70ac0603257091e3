// This script is the page of the browser edition: a start screen, then Streamlit's own page, whose
// server calls go to a worker. It runs first and inserts Streamlit's page later.

const HERE = new URL("./", import.meta.url); // .../edition/
const BASE = new URL("../", HERE);
const MB = 1e6;

// ------------------------------------------------------------------ the start screen

const screen = document.getElementById("edition");
const part = (name) => screen.querySelector(`[data-part="${name}"]`);

function megabytes(bytes) {
  return `${(bytes / MB).toFixed(bytes < 10 * MB ? 1 : 0)} MB`;
}

const workers = [];

// Report the first error only, because a worker that is stopped in mid-work fails again.
function stopped(text, cause = null) {
  if (screen.dataset.state === "failed") return;
  if (cause) console.error(cause);
  for (const each of workers) each.terminate();
  part("step").textContent = "";
  part("bar").hidden = true;
  part("plan").hidden = true;
  part("problem").textContent = text;
  part("problem").hidden = false;
  screen.dataset.state = "failed";
}

function note(text) {
  const line = document.createElement("p");
  line.textContent = text;
  part("notes").append(line);
}

function progressed({ loaded, total, kept }) {
  part("bar").max = total;
  part("bar").value = loaded;
  const source = kept > total / 2 ? "read from this browser's storage" : "loaded";
  part("step").textContent = `${megabytes(loaded)} of ${megabytes(total)} ${source}`;
}

function inflates() {
  try {
    return Boolean(new DecompressionStream("deflate-raw"));
  } catch (error) {
    return false;
  }
}

function obstacle() {
  if (typeof WebAssembly !== "object") {
    return "This browser has no WebAssembly, or it is turned off: an up-to-date Chromium, Firefox or Safari runs this page.";
  }
  if (typeof Worker !== "function" || typeof BigInt64Array !== "function" || typeof ReadableStream !== "function" || !inflates()) {
    return "This browser is too old to run Python: an up-to-date Chromium, Firefox or Safari runs this page.";
  }
  return null;
}

// ------------------------------------------------------------------ the worker

let worker = null;
let socket = null;
let questions = 0;
const asked = new Map();

function ask(message, transfer = []) {
  const id = (questions += 1);
  worker.postMessage({ ...message, id }, transfer);
  return new Promise((resolve, reject) => asked.set(id, { resolve, reject }));
}

function answered({ id, error, ...answer }) {
  const { resolve, reject } = asked.get(id);
  asked.delete(id);
  if (error) reject(new Error(error));
  else resolve(answer);
}

const HEARD = {
  progress: progressed,
  step: ({ text }) => (part("step").textContent = text),
  note: ({ text }) => note(text),
  failed: ({ text, cause }) => stopped(text, cause),
  ready,
  open: () => socket && socket.opened(),
  message: ({ data }) => socket && socket.received(data),
  kept: ({ name }) => window.dpvizEdition.kept.push(name),
  stored: () => (window.dpvizEdition.stored += 1),
  answer: answered,
};

function ready({ seconds, restored }) {
  Object.assign(window.dpvizEdition, { seconds, restored });
  takeOver();
  const main = document.createElement("script");
  main.type = "module";
  main.crossOrigin = "";
  main.src = new URL(screen.dataset.main, BASE).href;
  main.onerror = () => stopped("The page's own scripts could not be loaded: check the connection and reload.");
  document.head.append(main);
  part("step").textContent = "Opening";
}

// ------------------------------------------------------------------ in place of the server

const inside = (url) => {
  const path = new URL(url, location.href);
  return path.host === location.host && path.pathname.startsWith(BASE.pathname)
    ? path.pathname.slice(BASE.pathname.length)
    : null;
};
const isStream = (url) => new URL(url, location.href).pathname.endsWith("/_stcore/stream");

class Socket extends EventTarget {
  constructor(url, protocols = []) {
    super();
    Object.assign(this, { url, binaryType: "blob", bufferedAmount: 0, extensions: "", readyState: 0 });
    this.protocol = [protocols].flat()[0] ?? "";
    socket = this;
    worker.postMessage({ kind: "connect" });
  }

  fire(event) {
    const handler = this[`on${event.type}`];
    if (typeof handler === "function") handler.call(this, event);
    this.dispatchEvent(event);
  }

  opened() {
    if (this.readyState !== 0) return;
    this.readyState = 1;
    this.fire(new Event("open"));
  }

  received(data) {
    if (this.readyState !== 1) return;
    if (screen.isConnected) screen.remove();
    this.fire(new MessageEvent("message", { data }));
  }

  send(data) {
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const copy = bytes.slice().buffer;
    worker.postMessage({ kind: "message", data: copy }, [copy]);
  }

  close(code = 1000) {
    if (this.readyState >= 2) return;
    this.readyState = 2;
    if (socket === this) socket = null;
    worker.postMessage({ kind: "disconnect" });
    queueMicrotask(() => {
      this.readyState = 3;
      this.fire(new CloseEvent("close", { code, wasClean: true }));
    });
  }
}
const STATES = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 };
Object.assign(Socket, STATES);
Object.assign(Socket.prototype, STATES);

window.WebSocket = new Proxy(window.WebSocket, {
  construct: (Real, [url, protocols]) => (isStream(url) ? new Socket(url, protocols) : new Real(url, protocols)),
});

// Streamlit's page expects these answers from its server at these two addresses.
const FIXED = {
  "_stcore/health": () => new Response("ok"),
  "_stcore/host-config": () =>
    Response.json({
      allowedOrigins: [],
      useExternalAuthToken: false,
      enableCustomParentMessages: false,
      enforceDownloadInNewTab: false,
      metricsUrl: "",
      blockErrorDialogs: false,
      resourceCrossOriginMode: null,
    }),
};
const realFetch = window.fetch.bind(window);

window.fetch = async (input, options) => {
  const path = inside(input instanceof Request ? input.url : String(input));
  if (path !== null && path in FIXED) return FIXED[path]();
  if (path !== null && path.startsWith("media/")) {
    const { data, type } = await ask({ kind: "media", name: path.slice("media/".length) });
    return data === null ? new Response(null, { status: 404 }) : new Response(data, { headers: { "Content-Type": type } });
  }
  return realFetch(input, options);
};

// For an upload, Streamlit's page sends each file by its own XMLHttpRequest.
const UPLOAD = /^_stcore\/upload_file\/([^/]+)\/([^/]+)$/;

class ServerRequest extends XMLHttpRequest {
  #target = null;
  #verb = "GET";
  #status = null;

  open(verb, url, ...more) {
    this.#target = UPLOAD.exec(inside(url) ?? "");
    this.#verb = verb.toUpperCase();
    this.#status = null;
    super.open(verb, url, ...more);
  }

  get status() {
    return this.#status ?? super.status;
  }

  get readyState() {
    return this.#status === null ? super.readyState : 4;
  }

  get responseText() {
    return this.#status === null ? super.responseText : "";
  }

  get response() {
    return this.#status === null ? super.response : "";
  }

  send(body) {
    if (!this.#target) {
      super.send(body);
      return;
    }
    const [, session, file] = this.#target;
    this.#handOver(session, file, body).then(
      () => this.#finish(204),
      () => this.#finish(500),
    );
  }

  async #handOver(session, file, body) {
    if (this.#verb === "DELETE") return ask({ kind: "forget", session, file });
    const [, content] = [...body.entries()][0];
    const data = await content.arrayBuffer();
    const type = content.type || "application/octet-stream";
    this.upload.dispatchEvent(new ProgressEvent("progress", { lengthComputable: true, loaded: content.size, total: content.size }));
    return ask({ kind: "upload", session, file, name: content.name, type, data }, [data]);
  }

  #finish(status) {
    this.#status = status;
    for (const type of ["readystatechange", "load", "loadend"]) this.dispatchEvent(new ProgressEvent(type));
  }
}
window.XMLHttpRequest = ServerRequest;

// Downloads are links to the server's media files; the worker has each file's bytes and name.
const realClick = HTMLAnchorElement.prototype.click;

async function download(link, id) {
  const { data, type, name } = await ask({ kind: "media", name: id });
  if (data === null) return;
  const own = document.createElement("a");
  own.href = URL.createObjectURL(new Blob([data], { type }));
  own.download = name || link.download || id;
  realClick.call(own);
  setTimeout(() => URL.revokeObjectURL(own.href), 60_000);
}

function mediaOf(link) {
  const path = link.href ? inside(link.href) : null;
  return path !== null && path.startsWith("media/") ? path.slice("media/".length) : null;
}

HTMLAnchorElement.prototype.click = function click() {
  const name = mediaOf(this);
  if (name === null) realClick.call(this);
  else download(this, name);
};
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  const name = link && mediaOf(link);
  if (!name) return;
  event.preventDefault();
  download(link, name);
}, true);

// ------------------------------------------------------------------ begin

// Streamlit's page reads the addresses of its server and of its pages from this object.
window.__streamlit = {
  BACKEND_BASE_URL: BASE.href,
  HOST_CONFIG_BASE_URL: BASE.href,
  MAIN_PAGE_BASE_URL: BASE.href,
  DOWNLOAD_ASSETS_BASE_URL: BASE.href,
};
// Measurements and tests read these values: seconds of the start, modules restored as bytecode,
// writes to the store, compiled and stored items, bytes of memory.
window.dpvizEdition = { seconds: null, restored: 0, stored: 0, kept: [], memory: async () => (await ask({ kind: "memory" })).data };

function start(name, message, port) {
  // Start the worker from bytes, so that the page's content policy binds the worker too. A worker
  // loaded from an address has the policy that its host sends, or none.
  const code = `importScripts(${JSON.stringify(new URL(name, HERE).href)});`;
  const blob = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const started = new Worker(blob);
  started.onmessage = ({ data }) => HEARD[data.kind](data);
  started.onerror = () => stopped("This browser could not start Python; an up-to-date Chromium, Firefox or Safari can.");
  started.postMessage(message, [port]);
  workers.push(started);
  return started;
}

async function begin() {
  const why = obstacle();
  if (why !== null) {
    stopped(why);
    return;
  }
  const answer = await realFetch(new URL("lock.json", HERE), { cache: "no-cache" });
  if (!answer.ok) throw new Error(String(answer.status));
  const lock = await answer.json();
  const total = [...lock.pyodide.files, ...lock.bundles].reduce((sum, file) => sum + file.bytes, 0);
  part("size").textContent = megabytes(total);
  const early = document.createElement("link"); // The page's code is then ready when Python is.
  Object.assign(early, { rel: "modulepreload", href: new URL(screen.dataset.main, BASE).href, crossOrigin: "" });
  document.head.append(early);
  const { port1, port2 } = new MessageChannel();
  start("files.js", { lock, base: HERE.href, port: port1 }, port1);
  worker = start("worker.js", { kind: "start", lock, base: HERE.href, address: BASE.href, port: port2 }, port2);
}

// ------------------------------------------------------------------ the board before Python

// The first page shows a comparison computed in advance. Python is loaded when a visitor requests
// more than this comparison shows. A link to a setting loads Python at once.
function showBoard() {
  screen.dataset.state = "board";
  screen.prepend(part("board").content.cloneNode(true));
  for (const name of ["bar", "step"]) part(name).hidden = true;
  part("more").hidden = false;
  part("more").addEventListener("click", () => {
    part("more").hidden = true;
    for (const name of ["bar", "step"]) part(name).hidden = false;
    started();
  });
}

// The dashboard opens with the setting of the first page, at the slider's current epsilon.
function takeOver() {
  const frame = screen.querySelector("iframe");
  const said = frame?.contentDocument?.querySelector('input[aria-label="Epsilon"]')?.getAttribute("aria-valuetext");
  const epsilon = /^epsilon (\S+)$/.exec(said ?? "")?.[1];
  if (epsilon) history.replaceState(null, "", new URL(`?epsilon=${epsilon}`, BASE));
}

const started = () => begin().catch(() => stopped("The server did not list the files to load: check the connection and reload."));

if (!part("board") || location.search || obstacle() !== null) started();
else showBoard();
