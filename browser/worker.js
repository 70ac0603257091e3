// The worker that Python lives in. It fetches and checks every file, starts Pyodide and hands
// messages to browser/bridge.py. Nothing is fetched after the start.
"use strict";

const CACHE = "dpviz-edition";
const HOME = "/dpviz";
const STORE = `${HOME}/.cache/dpviz`;

let python = null;
let bridge = null;
let waiting = []; // messages that came before Python was ready
const held = new Map(); // file name -> promise of its bytes, for Pyodide's own loader

const say = (kind, more = {}) => self.postMessage({ kind, ...more });

class CannotRun extends Error {}

function hex(buffer) {
  return [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// ------------------------------------------------------------------ files, by bytes

class Loader {
  constructor(files, base) {
    this.base = base;
    this.total = files.reduce((sum, file) => sum + file.bytes, 0);
    this.loaded = 0;
    this.kept = 0;
    this.cache = null;
    this.full = false;
    this.last = 0;
  }

  async open(files) {
    // Absent on a page without a secure context; the browser's own cache serves there.
    if (!self.caches) return;
    try {
      this.cache = await caches.open(CACHE);
      const wanted = new Set(files.map((file) => this.keyOf(file)));
      for (const request of await this.cache.keys()) {
        if (!wanted.has(request.url)) await this.cache.delete(request);
      }
    } catch (error) {
      this.cache = null;
    }
  }

  keyOf(file) {
    return new URL(`held/${file.sha256}`, this.base).href;
  }

  report(force = false) {
    const now = performance.now();
    if (!force && now - this.last < 80) return;
    this.last = now;
    say("progress", { loaded: this.loaded, total: this.total, kept: this.kept });
  }

  async get(file) {
    const found = this.cache && (await this.cache.match(this.keyOf(file)));
    if (found) {
      const bytes = await found.arrayBuffer();
      if (bytes.byteLength === file.bytes) {
        this.loaded += file.bytes;
        this.kept += file.bytes;
        this.report();
        return bytes;
      }
    }
    const bytes = await this.fetched(file);
    await this.check(file, bytes);
    await this.keep(file, bytes);
    return bytes;
  }

  async fetched(file) {
    // Without crypto.subtle (no secure context) the browser itself checks the digest.
    const options = self.crypto && crypto.subtle ? {} : { integrity: integrityOf(file.sha256) };
    let answer;
    try {
      answer = await network(new URL(file.url, this.base), options);
    } catch (error) {
      throw new CannotRun(`${file.name} could not be loaded: the host did not answer.`);
    }
    if (!answer.ok) {
      throw new CannotRun(`${file.name} could not be loaded: the host answered ${answer.status}.`);
    }
    const bytes = new Uint8Array(file.bytes);
    const reader = answer.body.getReader();
    let at = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > bytes.length) throw wrong(file);
      bytes.set(value, at);
      at += value.length;
      this.loaded += value.length;
      this.report();
    }
    if (at !== bytes.length) throw wrong(file);
    return bytes.buffer;
  }

  async check(file, bytes) {
    if (!self.crypto || !crypto.subtle) return;
    if (hex(await crypto.subtle.digest("SHA-256", bytes)) !== file.sha256) throw wrong(file);
  }

  async keep(file, bytes) {
    if (!this.cache || this.full) return;
    try {
      await this.cache.put(this.keyOf(file), new Response(bytes.slice(0)));
    } catch (error) {
      this.full = true;
      say("note", {
        text:
          "The browser's storage for this site is full or closed, so the next visit loads " +
          "everything again.",
      });
    }
  }
}

function wrong(file) {
  return new CannotRun(
    `${file.name} is not the file on record (its sha256 differs): the folder was changed or ` +
      "a host in between changes files. Nothing of it was run.",
  );
}

function integrityOf(sha256) {
  const bytes = sha256.match(/../g).map((pair) => parseInt(pair, 16));
  return `sha256-${btoa(String.fromCharCode(...bytes))}`;
}

// Pyodide asks for its files by fetch: it gets the checked bytes, and no request leaves.
const network = self.fetch.bind(self);
self.fetch = async (input, options) => {
  const url = String(input instanceof Request ? input.url : input);
  const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1).split("?")[0]);
  if (!held.has(name)) return network(input, options);
  const bytes = await held.get(name);
  held.delete(name);
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(bytes, { headers: { "Content-Type": type } });
};

async function runScript(file) {
  const url = URL.createObjectURL(new Blob([await file], { type: "text/javascript" }));
  importScripts(url);
  URL.revokeObjectURL(url);
}

// ------------------------------------------------------------------ the start

async function start({ lock, base, address }) {
  const from = lock.pyodide.from;
  const files = [
    ...lock.pyodide.files.map((file) => ({ ...file, url: new URL(file.name, new URL(from, base)).href })),
    ...lock.bundles,
  ];
  const loader = new Loader(files, base);
  await loader.open(files);
  loader.report(true);
  for (const file of files) {
    const bytes = loader.get(file);
    bytes.catch(() => {}); // awaited where it is needed: the first failure is the one to tell
    held.set(file.name, bytes);
  }
  const everything = Promise.all(held.values());
  everything.catch(() => {});
  const began = performance.now();
  const bundles = lock.bundles.map((file) => ({ ...file, data: held.get(file.name) }));
  await runScript(held.get("pyodide.js"));
  await runScript(held.get("pyodide.asm.js"));
  const index = new URL("pyodide-lock.json", base).href;
  held.set("pyodide-lock.json", Promise.resolve(new TextEncoder().encode(JSON.stringify(lock.pyodide.lock)).buffer));
  python = await loadPyodide({
    indexURL: new URL(from, base).href,
    lockFileURL: index,
    env: { HOME, PYTHONDONTWRITEBYTECODE: "1", ...lock.environment },
  });
  await everything;
  loader.report(true);
  say("step", { text: "Unpacking" });
  await python.loadPackage(lock.pyodide.packages, { messageCallback: () => {} });
  for (const bundle of bundles) {
    python.unpackArchive(await bundle.data, "zip", { extractDir: bundle.into });
  }
  held.clear();
  await openStore();
  say("step", { text: "Starting Python" });
  python.runPython(`import importlib, sys; sys.path.insert(0, ${JSON.stringify(lock.app)}); importlib.invalidate_caches()`);
  python.setStdin({ error: true });
  bridge = python.pyimport("browser.bridge");
  await bridge.start(lock.app, python.toPy({ address }));
  say("ready", { seconds: (performance.now() - began) / 1000, full: loader.full });
  const early = waiting;
  waiting = null;
  for (const message of early) handle(message);
}

// ------------------------------------------------------------------ what outlives a reload

let storing = null;

async function openStore() {
  python.FS.mkdirTree(STORE);
  try {
    if (!self.indexedDB) throw new Error("no IndexedDB");
    python.FS.mount(python.FS.filesystems.IDBFS, {}, STORE);
    await synchronise(true);
    storing = Promise.resolve();
  } catch (error) {
    say("note", { text: "This browser keeps nothing here: results are worked out again after a reload." });
  }
}

function synchronise(populate) {
  return new Promise((resolve, reject) =>
    python.FS.syncfs(populate, (error) => (error ? reject(error) : resolve())),
  );
}

// Called by the bridge after each run; one write at a time.
self.keepStore = () => {
  if (!storing) return;
  storing = storing
    .then(() => synchronise(false))
    .then(() => say("stored"))
    .catch(() => {
      say("note", { text: "The browser's storage is full: new results will not outlive a reload." });
    });
};

// ------------------------------------------------------------------ called by the bridge

self.toPage = (bytes) => {
  const copy = bytes.slice();
  self.postMessage({ kind: "message", data: copy.buffer }, [copy.buffer]);
};

// A turn of the event loop; 0 lets messages of the page in.
self.turn = () => new Promise((resolve) => setTimeout(resolve, 0));

// Scripts run one after the other: each was started as a thread, and there is one thread.
let scripts = Promise.resolve();
self.runLater = (proxy) => {
  const script = proxy.copy();
  scripts = scripts
    .then(self.turn)
    .then(() => (script.callPromising && WebAssembly.Suspending ? script.callPromising() : script()))
    .catch((error) => console.error(error))
    .finally(() => script.destroy());
};

// ------------------------------------------------------------------ messages of the page

function handle(message) {
  try {
    if (message.kind === "connect") {
      bridge.connect();
      say("open");
    } else if (message.kind === "disconnect") {
      bridge.disconnect();
    } else if (message.kind === "message") {
      bridge.receive(python.toPy(new Uint8Array(message.data)));
    } else if (message.kind === "upload") {
      bridge.upload(message.session, message.file, message.name, message.type, python.toPy(new Uint8Array(message.data)));
      say("answer", { id: message.id });
    } else if (message.kind === "forget") {
      bridge.forget(message.session, message.file);
      say("answer", { id: message.id });
    } else if (message.kind === "media") {
      const found = bridge.media(message.name);
      const [data, type, name] = found ? found.toJs() : [null, "", ""];
      if (found) found.destroy();
      say("answer", { id: message.id, data, type, name });
    } else if (message.kind === "memory") {
      const bytes = python._module.HEAP8.length;
      say("answer", { id: message.id, data: bytes });
    }
  } catch (error) {
    console.error(error);
    if (message.id !== undefined) say("answer", { id: message.id, error: "Python did not answer." });
  }
}

function sentence(error) {
  if (error instanceof CannotRun) return error.message;
  if (error instanceof RangeError || /out of memory/i.test(String(error))) {
    return "This browser has not enough free memory for Python: close other tabs and reload.";
  }
  return "This browser could not start Python; an up-to-date Chromium, Firefox or Safari can.";
}

self.onmessage = ({ data }) => {
  if (data.kind === "start") {
    start(data).catch((error) => {
      console.error(error);
      say("failed", { text: sentence(error) });
    });
  } else if (waiting) {
    waiting.push(data);
  } else {
    handle(data);
  }
};
